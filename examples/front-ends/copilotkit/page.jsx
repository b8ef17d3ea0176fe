// A chat with a served agent: CopilotKit's own page, over its runtime.
import { createRoot } from 'react-dom/client';
import { CopilotKit } from '@copilotkit/react-core';
import { CopilotChat } from '@copilotkit/react-ui';
import '@copilotkit/react-ui/styles.css';

createRoot(document.getElementById('chat')).render(
  <CopilotKit runtimeUrl="/api/copilotkit" agent="support" showDevConsole={false}>
    <CopilotChat labels={{ title: 'Support', initial: 'How can I help?' }} />
  </CopilotKit>,
);
