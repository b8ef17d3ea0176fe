// A chat with a served agent: useChat over the UI message stream, with approvals.
import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';

const transport = new DefaultChatTransport({ api: `/ui/${new URLSearchParams(location.search).get('agent') ?? 'support'}` });

function Part({ part, decide }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (part.type === 'reasoning') return <p className="thought">{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  const name = part.toolName ?? part.type;
  return (
    <div className="call">
      <code>{name} {JSON.stringify(part.input)}</code>
      {part.state === 'output-available' && <pre>{typeof part.output === 'string' ? part.output : JSON.stringify(part.output)}</pre>}
      {part.state === 'output-error' && <pre>{part.errorText}</pre>}
      {part.state === 'approval-requested' && (
        <>
          <button onClick={() => decide({ id: part.approval.id, approved: true })}>Allow</button>
          <button onClick={() => decide({ id: part.approval.id, approved: false })}>Deny</button>
        </>
      )}
    </div>
  );
}

function Chat() {
  const [text, setText] = useState('');
  const { messages, sendMessage, addToolApprovalResponse, status, stop, error } = useChat({
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const send = (event) => {
    event.preventDefault();
    if (text.trim()) sendMessage({ text });
    setText('');
  };
  return (
    <main>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, at) => <Part key={at} part={part} decide={addToolApprovalResponse} />)}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} autoFocus />
        {status === 'streaming' ? <button type="button" onClick={stop}>Stop</button> : <button>Send</button>}
      </form>
    </main>
  );
}

createRoot(document.getElementById('chat')).render(<Chat />);
