// Serves the page, and passes what it asks of the agent on to `agent serve`.
import { serve } from '../serve.mjs';

await serve({ folder: import.meta.dirname, title: 'AI SDK' });
