// A file that is read into the do-not-call list, or into the consents, and how far that is.
import { ask, call } from '../api.js';
import { ApiError } from '../../common.js';
import { Field, FormDialog } from '../form.js';
import { count } from '../format.js';
import { html, useEffect } from '../html.js';
import { useEvery } from '../live.js';
import { Badge, Facts, Loaded, Progress, useLoad } from '../parts.js';
import { place } from '../place.js';
import { words } from '../words.js';
import { look, pieces } from './csv.js';
import { Refused, isRunning } from './imports.js';
import { sentence } from './lines.js';

/** Where a file goes, and what is said of it. */
const DNC = { page: 'dnc', path: '/dnc/import', text: words.dnc.importing };
/** Imports that a workspace has at once. */
const MOST = 10;
/** Refused rows that do not hide the list below them. */
const FEW = 5;

const looksLikeEntry = (cell) => /^[+(]?\d[\d\s()./-]*\d$|^\S+@\S+$/.test(cell.trim());
const asItIs = (cell) => cell;

/** Its columns: those that the first row names; of a bare list of numbers or addresses the first. */
function shapeOf({ first: [{ cells }] }) {
  const hasHeader = !cells.some(looksLikeEntry);
  if (hasHeader) return { hasHeader, columns: cells.map((name) => ({ name, write: asItIs })) };
  const at = cells.findIndex(looksLikeEntry);
  const name = cells[at].includes('@') ? 'email' : 'phone_number';
  return { hasHeader, columns: cells.map((_, n) => (n === at ? { name, write: asItIs } : null)) };
}

/** The file as the API takes it. */
async function readOf(file, text) {
  const found = await look(file, '', () => {});
  const all = [];
  for await (const piece of pieces(file, found, shapeOf(found), () => {})) {
    all.push(piece);
    if (all.length > MOST) throw new Error(text.tooLarge);
  }
  return all;
}

export function ImportDialog({ into = DNC, close, done }) {
  const { text, page, path } = into;
  const act = async (values) => {
    // Where it was chosen: the person may go elsewhere meanwhile.
    const { slug, env } = place.value;
    const isHere = () => slug === place.value.slug && env === place.value.env && place.value.page === page;
    const ids = [];
    try {
      for (const piece of await readOf(values.get('file'), text)) {
        ids.push((await ask('POST', `/t/${encodeURIComponent(slug)}/${env}${path}`, piece)).id);
      }
    } catch (error) {
      const said = sentence(error.message);
      if (ids.length && isHere()) done(ids);
      throw new ApiError(ids.length ? text.partly(said) : said, { status: error.status, param: 'file' });
    }
    if (isHere()) done(ids);
  };
  return html`
    <${FormDialog} title=${text.title} act=${act} submit=${text.submit} close=${close}>
      <p>${text.text}</p>
      <pre class="panel example" tabindex="0" role="group" aria-label=${text.exampleLabel}>${text.example}</pre>
      <${Field} name="file" type="file" accept=".csv,.tsv,.txt,text/csv,text/plain" label=${text.file} hint=${text.hint} required data-message=${text.choose} />
    <//>`;
}

/** Several imports of one file as one. */
function whole(jobs) {
  const sum = (name) => jobs.reduce((all, job) => all + job[name], 0);
  const status = ['failed', 'running'].find((one) => jobs.some((job) => job.status === one)) ?? 'completed';
  return {
    status, progress: sum('progress') / jobs.length, rows: sum('rows'), accepted: sum('accepted'), duplicates: sum('duplicates'), rejected: sum('rejected'),
    rejections: jobs.flatMap(({ rejections }) => rejections), isCut: jobs.some((job) => job.rejections_truncated),
    errors: jobs.map(({ error }) => error).filter(Boolean), isRunning: jobs.some(isRunning),
  };
}

/** How far they are; `done` when all are through, `close` to look at them no more. */
export function ImportProgress({ ids, of: { text } = DNC, done, close }) {
  const load = async () => whole(await Promise.all(ids.map((id) => call('GET', `/imports/${encodeURIComponent(id)}`))));
  const loaded = useLoad(load, [ids.join()]);
  const isOver = loaded.data?.isRunning === false;
  useEvery(loaded.reload, 5_000, Boolean(loaded.data?.isRunning));
  useEffect(() => { if (isOver) done(); }, [isOver]);
  return html`
    <section class="stack tight panel tools" aria-labelledby="import">
      <${Loaded} of=${loaded}>${(job) => html`
        <h2 id="import">${text.heading} <${Badge} of=${job.status} /></h2>
        <div class="whole" role="status"><${Progress} done=${job.progress} total=${1} label=${text.progress} /><span>${text.state(job.status, count(job.rows))}</span></div>
        <${Facts} of=${['accepted', 'duplicates', 'rejected'].map((name) => [text.facts[name], count(job[name])])} />
        ${job.errors.map((error) => html`<p class="error block" role="alert" key=${error}>${sentence(error)}</p>`)}
        ${job.rejections.length > 0 && html`
          <details open=${job.rejected <= FEW}><summary>${text.refused(count(job.rejected))}</summary>
            <${Refused} rejections=${job.rejections} isCut=${job.isCut} name=${text.refusedName} heading="h3" />
          </details>`}
        ${job.isRunning && html`<p class="hint">${text.leave}</p>`}`}<//>
      <div class="actions left"><button class="button quiet small" onClick=${close}>${text.close}</button></div>
    </section>`;
}
