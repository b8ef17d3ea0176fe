// The page is a client of the Runs API: it starts runs, waits for them, and answers their questions.
'use strict';

const session = crypto.randomUUID();
const find = (id) => document.getElementById(id);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Sends a request and returns the JSON of its response.
async function api(path, body) {
  const options = body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(`/api/${path}`, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message ?? response.statusText);
  return answer;
}

// Texts are inserted as text, never as HTML: they come from customers and models.
function element(tag, text, className = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

function show(text, className) {
  const line = element('li', text, className);
  find('chat').append(line);
  return line;
}

// Starts a run and follows it until it ends. While a refund waits, the run uses no process.
async function say(text) {
  show(text, 'customer');
  const line = show('…');
  let run = await api('agents/support/runs', { input: text, session });
  while (run.status === 'running' || run.status === 'queued' || run.status === 'waiting') {
    if (run.status === 'waiting') {
      line.textContent = 'A colleague looks at the refund.';
      line.className = 'waiting';
      await pause(1000);
    }
    run = await api(`runs/${run.run}?wait=20`);
  }
  line.className = '';
  line.textContent = run.answer ?? run.error ?? `The run is ${run.status}.`;
}

// Shows the open questions with two buttons each.
async function refresh() {
  const { questions } = await api('questions?agent=support');
  find('none').hidden = questions.length > 0;
  find('open').replaceChildren(...questions.map(({ run, question }) => {
    const { number, reason } = question.payload.arguments;
    const item = element('li', '');
    item.append(element('strong', `Refund ${number}?`), element('p', reason));
    // The digest binds the answer to exactly this question.
    const decide = (decision) => async () => {
      item.querySelectorAll('button').forEach((button) => { button.disabled = true; });
      await guarded(() => api(`runs/${run}/answers`, { answers: [{ question: question.id, digest: question.digest, ...decision }] }));
      await guarded(refresh);
    };
    const yes = element('button', 'Approve');
    const no = element('button', 'Reject', 'no');
    yes.addEventListener('click', decide({ allow: true }));
    no.addEventListener('click', decide({ allow: false, reason: 'A colleague rejected the refund.' }));
    item.append(yes, no);
    return item;
  }));
}

async function guarded(work) {
  try {
    await work();
    find('problem').textContent = '';
  } catch (error) {
    find('problem').textContent = error.message;
  }
}

find('say').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = find('text').value.trim();
  find('text').value = '';
  if (text) guarded(() => say(text));
});

(async () => {
  for (;;) {
    await guarded(refresh);
    await pause(1500);
  }
})();
