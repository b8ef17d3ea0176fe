// The SDK of the Model Context Protocol against the served actor.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'check', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { answer: '{"decision": "approve"}' } }));
await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.SERVER}/mcp/actor`)));
const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ['actor']);
const call = async (task) => (await client.callTool({ name: 'actor', arguments: { task } })).content[0].text;
assert.equal(await call('tool'), 'So it is: 17 degrees in Bern.');
assert.equal(await call('ask'), 'So it is: refunded "A-17".');
await client.close();
console.log('mcp: passed');
process.exit(0);
