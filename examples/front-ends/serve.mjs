// What the front ends share: a page that is built when the program starts, and a way from it to the agent, so that the page and the agent
// are of one origin and the agent's key stays here.
import { createServer, request } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const AGENT = process.env.AGENT_SERVER ?? 'http://127.0.0.1:8080';

const STYLE = `
  body { font: 16px/1.5 system-ui; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
  .user { background: #eef; padding: 0 1rem; border-radius: .5rem } .thought { color: #777 }
  .call { border-left: 3px solid #ccc; padding-left: .75rem } pre { white-space: pre-wrap }
  form { display: flex; gap: .5rem; margin-top: 1rem } input { flex: 1; font: inherit; padding: .4rem }`;

/** A module of the packages that are installed in `folder`. */
export const load = (folder, name) => import(pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)));

/** Serves `page.jsx` of a folder; `answer` is asked first, and says whether it answers. */
export async function serve({ folder, title, answer = () => false }) {
  const esbuild = await load(folder, 'esbuild');
  const built = await esbuild.build({
    entryPoints: [join(folder, 'page.jsx')], bundle: true, write: false, minify: true, outdir: 'out', format: 'esm', jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' }, loader: { '.woff2': 'dataurl', '.woff': 'dataurl', '.ttf': 'dataurl' }, logLevel: 'error',
  });
  const file = (ending) => built.outputFiles.find((it) => it.path.endsWith(ending))?.text ?? '';
  const [script, style] = [file('.js'), STYLE + file('.css')];
  const page = `<!doctype html><meta charset="utf-8"><title>${title}</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css"><div id="chat"></div><script type="module" src="/page.js"></script>`;
  const files = { '/': ['text/html', page], '/page.js': ['text/javascript', script], '/page.css': ['text/css', style] };
  const server = createServer(async (asked, told) => {
    const found = files[asked.url.split('?')[0]];
    if (found) return told.writeHead(200, { 'content-type': `${found[0]}; charset=utf-8` }).end(found[1]);
    if (!(await answer(asked, told))) pass(asked, told);
  });
  server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
}

/** Passes a request on to the agent, with the key that this program has. */
function pass(asked, told) {
  const headers = { ...asked.headers, host: new URL(AGENT).host };
  delete headers.origin;
  if (process.env.AGENT_KEY) headers.authorization = `Bearer ${process.env.AGENT_KEY}`;
  const way = request(new URL(asked.url, AGENT), { method: asked.method, headers }, (answer) => {
    told.writeHead(answer.statusCode, answer.headers);
    answer.pipe(told);
  });
  way.on('error', (error) => told.writeHead(502).end(`the agent is not there: ${error.message}`));
  // Who stops reading stops the run.
  told.on('close', () => way.destroy());
  asked.pipe(way);
}
