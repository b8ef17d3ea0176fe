// Serves the page and CopilotKit's runtime, which asks the agent over AG-UI.
import { AGENT, load, serve } from '../serve.mjs';

const folder = import.meta.dirname;
process.env.COPILOTKIT_TELEMETRY_DISABLED = 'true';
const { CopilotRuntime, ExperimentalEmptyAdapter, copilotRuntimeNodeHttpEndpoint } = await load(folder, '@copilotkit/runtime');
const { HttpAgent } = await load(folder, '@ag-ui/client');

const headers = process.env.AGENT_KEY ? { authorization: `Bearer ${process.env.AGENT_KEY}` } : {};
const runtime = new CopilotRuntime({ agents: { support: new HttpAgent({ url: `${AGENT}/ag-ui/support`, headers }) } });
const endpoint = copilotRuntimeNodeHttpEndpoint({ endpoint: '/api/copilotkit', runtime, serviceAdapter: new ExperimentalEmptyAdapter() });

await serve({
  folder,
  title: 'CopilotKit',
  answer: async (asked, told) => {
    if (!asked.url.startsWith('/api/copilotkit')) return false;
    await endpoint(asked, told);
    return true;
  },
});
