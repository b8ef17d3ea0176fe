// The front ends in a real browser, in front of the real server: `checks/front_ends.sh` runs this.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { launch, studio, SUPPORT } from '../../../agent-server/studio/tests/browser/harness.mjs';

const FRONT_ENDS = process.env.FRONT_ENDS;

/** A front end by its one command, and a page that shows it, as soon as it is `ready`. */
async function shown(name, drive, ready = async () => {}) {
  const served = await studio({ command: ['serve', SUPPORT, '--store', 'memory'] });
  const agent = new URL(served.url).origin;
  const child = spawn('node', ['server.mjs'], { cwd: `${FRONT_ENDS}/${name}`, env: { ...process.env, AGENT_SERVER: agent, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'] });
  const browser = await launch();
  try {
    const url = await new Promise((found, failed) => {
      child.stdout.on('data', (text) => /http:\/\/[\d.]+:\d+/.test(text) && found(/http:\/\/[\d.]+:\d+/.exec(text)[0]));
      child.once('exit', (code) => failed(new Error(`${name} ended with ${code}`)));
    });
    const page = await browser.newPage();
    page.setDefaultTimeout(20_000);
    const prepared = ready(page);
    await page.goto(url);
    await prepared;
    await drive(page);
  } finally {
    child.removeAllListeners('exit');
    child.kill();
    await browser.close();
    await served.stop();
  }
}

test('the AI SDK shows an answer, and a refund that a person allowed', async () => {
  await shown('ai-sdk', async (page) => {
    const box = page.getByLabel('Message');
    await box.fill('Refund A-17, please.');
    await box.press('Enter');
    await page.getByText('broken on arrival').waitFor();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('A-17 is refunded. Have a good day!').waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
  });
});

/** True of the answer to what CopilotKit's runtime was asked. */
const asked = (method) => (answer) => answer.request().postData()?.includes(method) ?? false;

test('CopilotKit shows an answer as it is said', async () => {
  await shown('copilotkit', async (page) => {
    const box = page.getByRole('textbox').first();
    const run = page.waitForResponse(asked('agent/run'));
    await box.fill('markdown, please');
    await box.press('Enter');
    await page.getByText('and a kettle says so').waitFor();
    await (await run).finished();
    await box.fill('plan the day');
    await box.press('Enter');
    await page.getByText('All three were looked up.').waitFor();
  }, (page) => page.waitForResponse(asked('agent/connect')));
});
