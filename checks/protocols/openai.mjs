// The official Node SDK of OpenAI against the served actor.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${process.env.SERVER}/v1`, apiKey: 'none' });
const parameters = { type: 'object', properties: { from: { type: 'array', items: { type: 'string' } } } };

const checks = {
  async chat() {
    const stream = client.chat.completions.stream({ model: 'actor', messages: [{ role: 'user', content: 'tool' }] });
    const final = await stream.finalChatCompletion();
    assert.match(final.choices[0].message.content, /So it is: 17 degrees in Bern\.$/);
  },
  async 'chat with a tool of the client'() {
    const runner = client.chat.completions.runTools({
      model: 'actor',
      messages: [{ role: 'user', content: 'color' }],
      tools: [{ type: 'function', function: { name: 'pick_color', description: 'Asks.', parameters, parse: JSON.parse, function: ({ from }) => from[1] } }],
    });
    assert.equal(await runner.finalContent(), 'So it is: blue.');
  },
  async responses() {
    const stream = client.responses.stream({ model: 'actor', input: 'tool' });
    let text = '';
    stream.on('response.output_text.delta', (event) => (text += event.delta));
    const final = await stream.finalResponse();
    assert.deepEqual(final.output.map((item) => item.type), ['message', 'mcp_call', 'message']);
    assert.equal(text, final.output_text);
  },
  async errors() {
    await assert.rejects(client.responses.create({ model: 'nobody', input: 'hi' }), OpenAI.NotFoundError);
    await assert.rejects(client.chat.completions.stream({ model: 'actor', messages: [{ role: 'user', content: 'fail' }] }).done(), /the model fell silent/);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(`openai (Node): ${name}: passed`);
}
