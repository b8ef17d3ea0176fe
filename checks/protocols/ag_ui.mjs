// The real client of AG-UI against the served actor: every scene, in both forms of the protocol, and no warning.
import assert from 'node:assert/strict';
import { HttpAgent } from '@ag-ui/client';

const url = `${process.env.SERVER}/ag-ui/actor`;
const warnings = [];
console.warn = (...words) => warnings.push(words.join(' '));

/** Asks for the binary form. */
class BinaryAgent extends HttpAgent {
  requestInit(input) {
    const init = super.requestInit(input);
    return { ...init, headers: { ...init.headers, Accept: 'application/vnd.ag-ui.event+proto' } };
  }
}

let Agent = HttpAgent;

function frontEnd(name, extra = {}) {
  return new Agent({ url, threadId: `${name}-${Agent === BinaryAgent ? 'binary' : 'events'}-${Date.now()}`, ...extra });
}

async function run(agent, input = {}) {
  const events = [];
  const { newMessages } = await agent.runAgent({ tools: [], context: [], forwardedProps: {}, ...input }, { onEvent: ({ event }) => events.push(event) });
  return { events, newMessages, kinds: events.map((event) => event.type), end: events.at(-1) };
}

function says(agent, text) {
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
}

const of = (told, kind) => told.events.filter((event) => event.type === kind);
const text = (messages) => messages.filter((message) => message.role === 'assistant').map((message) => message.content ?? '').join('|');

const scenes = {
  async text() {
    const agent = frontEnd('text');
    says(agent, 'hello');
    const told = await run(agent);
    assert.equal(text(told.newMessages), 'You said: hello.');
    assert.equal(told.end.outcome.type, 'success');
  },
  async tool() {
    const agent = frontEnd('tool');
    says(agent, 'tool');
    const told = await run(agent);
    assert.equal(told.newMessages.find((message) => message.role === 'tool').content, '17 degrees in Bern');
    assert.match(text(told.newMessages), /So it is: 17 degrees in Bern\.$/);
    assert.equal(told.end.usage[0].totalTokens, 30);
  },
  async 'parallel tools'() {
    const agent = frontEnd('parallel');
    says(agent, 'parallel');
    const told = await run(agent);
    assert.equal(told.newMessages.find((message) => message.toolCalls).toolCalls.length, 2);
    assert.equal(told.newMessages.filter((message) => message.role === 'tool').length, 2);
  },
  async 'reasoning with an encrypted value'() {
    const agent = frontEnd('reasoning');
    says(agent, 'reasoning');
    const told = await run(agent);
    const thought = told.newMessages.find((message) => message.role === 'reasoning');
    assert.deepEqual([thought.content, thought.encryptedValue], ['Hm.', 'sealed']);
  },
  async state() {
    const agent = frontEnd('state');
    says(agent, 'state');
    const told = await run(agent);
    assert.deepEqual(agent.state, { plan: ['look', 'leap'] });
    assert.ok(of(told, 'STATE_SNAPSHOT').length === 1 && of(told, 'STATE_DELTA').length > 0);
    says(agent, 'hello');
    agent.state = { plan: ['mine'], secret: 'not shared' };
    await run(agent);
    assert.deepEqual(agent.state, { plan: ['mine'] });
  },
  async 'nested sub-agents'() {
    const agent = frontEnd('agents');
    says(agent, 'agents');
    const told = await run(agent);
    assert.equal(of(told, 'SUBAGENT_FINISHED').length, 4);
    assert.equal(of(told, 'SUBAGENT_STARTED').filter((event) => event.parentSubagentRunId).length, 2);
  },
  async 'interrupt, then resume'() {
    const agent = frontEnd('ask');
    says(agent, 'ask');
    await run(agent);
    assert.equal(agent.pendingInterrupts.length, 1);
    await assert.rejects(run(agent), 'a run that does not answer');
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { decision: 'approve' } }));
    const told = await run(agent, { resume });
    assert.equal(of(told, 'TOOL_CALL_RESULT')[0].content, 'refunded "A-17"');
    assert.deepEqual(agent.pendingInterrupts, []);
  },
  async 'an interrupt that is cancelled'() {
    const agent = frontEnd('ask-cancelled');
    says(agent, 'ask');
    await run(agent);
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' }));
    const told = await run(agent, { resume });
    assert.doesNotMatch(of(told, 'TOOL_CALL_RESULT')[0].content, /refunded/);
  },
  async cancelled() {
    const agent = frontEnd('cancel');
    says(agent, 'cancel');
    const told = await run(agent);
    assert.equal(told.end.outcome.type, 'cancelled');
  },
  async 'error in the middle of a message'() {
    const agent = frontEnd('fail');
    says(agent, 'fail');
    const told = await run(agent);
    assert.deepEqual([told.end.type, told.end.code], ['RUN_ERROR', 'provider']);
    assert.match(told.end.message, /the model fell silent/);
  },
  async 'an answer that is taken back'() {
    const agent = frontEnd('again');
    says(agent, 'again');
    await run(agent);
    assert.equal(text(agent.messages), 'You said: again.');
  },
  async 'keep-alives'() {
    const agent = frontEnd('slow');
    says(agent, 'slow');
    const told = await run(agent);
    assert.match(text(told.newMessages), /waited/);
  },
  async 'two runs'() {
    const agent = frontEnd('two');
    for (const word of ['one', 'two']) {
      says(agent, word);
      const told = await run(agent);
      assert.equal(text(told.newMessages), `You said: ${word}.`);
    }
    assert.equal(agent.messages.length, 4);
  },
  async 'a tool of the front end'() {
    const agent = frontEnd('color');
    const tools = [{ name: 'pick_color', description: 'Asks for a colour.', parameters: { type: 'object', properties: { from: { type: 'array', items: { type: 'string' } } } } }];
    says(agent, 'color');
    const told = await run(agent, { tools });
    assert.deepEqual(told.end.outcome.pendingToolCallIds, ['c1']);
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: 'c1', content: 'red' });
    const next = await run(agent, { tools });
    assert.equal(text(next.newMessages), 'So it is: red.');
  },
};

let failures = 0;
const both = [HttpAgent, BinaryAgent].flatMap((form) => Object.entries(scenes).map(([name, scene]) => [form, name, scene]));
for (const [form, name, scene] of both) {
  // Whoever waits for 17 seconds learns nothing new in the other form, which has no comments to send.
  if (form === BinaryAgent && name === 'keep-alives') continue;
  Agent = form;
  warnings.length = 0;
  try {
    await scene();
    assert.deepEqual(warnings, [], 'the client warned');
    console.log(`ag-ui (${form === BinaryAgent ? "binary" : "events"}): ${name}: passed`);
  } catch (error) {
    failures += 1;
    console.log(`ag-ui (${form === BinaryAgent ? "binary" : "events"}): ${name}: FAILED: ${error.message}`);
  }
}
process.exit(failures ? 1 : 0);
