// The AI SDK's own transport and parser against the served actor.
import assert from 'node:assert/strict';
import { DefaultChatTransport, readUIMessageStream, validateUIMessages } from 'ai';

globalThis.AI_SDK_LOG_WARNINGS = (warning) => assert.fail(`a warning: ${JSON.stringify(warning)}`);
const transport = new DefaultChatTransport({ api: `${process.env.SERVER}/ui/actor` });

class Chat {
  constructor(name, body = {}) {
    this.id = `${name}-${Date.now()}`;
    this.messages = [];
    this.body = body;
  }

  says(text) {
    this.messages.push({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] });
  }

  // As useChat does it: the stream goes into the last message, if that is the agent's.
  async run(body = {}) {
    const last = this.messages.at(-1);
    const message = last.role === 'assistant' ? last : undefined;
    const stream = await transport.sendMessages({ chatId: this.id, messages: this.messages, trigger: 'submit-message', body: { ...this.body, ...body } });
    const errors = [];
    let answer;
    for await (const read of readUIMessageStream({ message, stream, onError: (error) => errors.push(error) })) answer = read;
    if (answer && message) this.messages.pop();
    if (answer) this.messages.push(answer);
    if (!errors.length) await validateUIMessages({ messages: this.messages });
    return { answer, errors };
  }
}

const text = (message) => message.parts.filter((part) => part.type === 'text').map((part) => part.text).join('|');
const calls = (message) => message.parts.filter((part) => part.type === 'dynamic-tool');

const scenes = {
  async text() {
    const chat = new Chat('text');
    chat.says('hello');
    const { answer } = await chat.run();
    assert.equal(text(answer), 'You said: hello.');
    assert.equal(answer.metadata.usage.totalTokens, 15);
    chat.says('bye');
    assert.equal(text((await chat.run()).answer), 'You said: bye.');
    assert.equal(chat.messages.length, 4);
  },
  async tools() {
    const chat = new Chat('parallel');
    chat.says('parallel');
    const { answer } = await chat.run();
    assert.deepEqual(calls(answer).map((call) => [call.state, call.output]), [['output-available', '17 degrees in Bern'], ['output-available', '17 degrees in Oslo']]);
    assert.deepEqual(calls(answer)[0].input, { city: 'Bern' });
  },
  async reasoning() {
    const chat = new Chat('reasoning');
    chat.says('reasoning');
    const { answer } = await chat.run();
    assert.equal(answer.parts.find((part) => part.type === 'reasoning').text, 'Hm.');
  },
  async 'state and sub-agents'() {
    const chat = new Chat('agents');
    chat.says('agents');
    const agents = (await chat.run()).answer.parts.filter((part) => part.type === 'data-agent');
    assert.deepEqual(agents.map((part) => part.data.status), ['finished', 'finished', 'finished', 'finished']);
    chat.says('state');
    const { answer } = await chat.run();
    assert.deepEqual(answer.parts.find((part) => part.type === 'data-state').data, { plan: ['look', 'leap'] });
  },
  async approval() {
    const chat = new Chat('ask');
    chat.says('ask');
    const [call] = calls((await chat.run()).answer);
    assert.equal(call.state, 'approval-requested');
    Object.assign(call, { state: 'approval-responded', approval: { ...call.approval, approved: true } });
    const { answer } = await chat.run();
    assert.deepEqual(calls(answer).map((call) => [call.state, call.output]), [['output-available', 'refunded "A-17"']]);
    assert.equal(chat.messages.length, 2);
  },
  async 'a tool of the client'() {
    const chat = new Chat('color', { tools: { pick_color: { description: 'Asks.', parameters: { type: 'object' } } } });
    chat.says('color');
    const [call] = calls((await chat.run()).answer);
    assert.deepEqual([call.state, call.providerExecuted ?? false], ['input-available', false]);
    Object.assign(call, { state: 'output-available', output: 'blue' });
    const { answer } = await chat.run();
    assert.equal(text(answer), 'So it is: blue.');
  },
  async errors() {
    const chat = new Chat('fail');
    chat.says('fail');
    const { errors } = await chat.run();
    assert.match(String(errors[0]?.message), /the model fell silent/);
    const cancelled = new Chat('cancel');
    cancelled.says('cancel');
    assert.deepEqual((await cancelled.run()).errors, []);
  },
};

let failures = 0;
for (const [name, scene] of Object.entries(scenes)) {
  try {
    await scene();
    console.log(`ai: ${name}: passed`);
  } catch (error) {
    failures += 1;
    console.log(`ai: ${name}: FAILED: ${error.message}`);
  }
}
process.exit(failures ? 1 : 0);
