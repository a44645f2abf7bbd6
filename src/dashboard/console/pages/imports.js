import { call, query } from '../api.js';
import { count } from '../format.js';
import { html } from '../html.js';
import { useEvery } from '../live.js';
import { Badge, Choice, Facts, Heading, Loaded, More, Progress, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';

const text = words.imports;
const KINDS = ['contacts', 'dnc', 'consents'];
const STATUSES = ['running', 'completed', 'failed'];
/** Refused rows that a page lists; a file has the others. */
const SHOWN = 50;

export const isRunning = ({ status }) => status === 'running';

const shareOf = ({ progress }) => text.done(Math.floor(progress * 100));

function Share({ of: { status, progress } }) {
  const label = shareOf({ progress });
  return html`<${Badge} of=${status} />${status === 'running' && html` <${Progress} done=${progress} total=${1} label=${label} /> ${label}`}`;
}

/** Saves a file that the page itself has made. */
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** What the API says of a refused row, for people to read. */
export function plain(message) {
  const isName = message.startsWith('`');
  const said = message.replaceAll('`', '');
  return isName ? said : said.slice(0, 1).toUpperCase() + said.slice(1);
}

/** The rows that were refused, with their lines. `download`: makes the file; without it there is one of lines and reasons. */
export function Refused({ rejections, isCut, download, name, heading = 'h2' }) {
  if (!rejections.length) return null;
  const row = ({ line, param, message }, n) => ({
    key: n, cells: [count(line), param ? html`<code>${param}</code>` : words.none, html`<span class="wrap">${plain(message)}</span>`],
  });
  const reasons = () => {
    const cell = (value) => `"${String(value ?? '').replaceAll('"', '""')}"`;
    const rows = [Object.values(text.refusedColumns), ...rejections.map(({ line, param, message }) => [line, param, plain(message)])];
    save(new Blob(['\ufeff', ...rows.map((row) => `${row.map(cell).join(',')}\r\n`)], { type: 'text/csv' }), name);
  };
  return html`
    <section class="stack tight" aria-labelledby="refused">
      <${heading} id="refused">${text.refused}<//>
      <div class="actions left"><button type="button" class="button quiet small" onClick=${download ?? reasons}>${text.download}</button></div>
      <${Table} label=${text.refused} columns=${Object.values(text.refusedColumns)} rows=${rejections.slice(0, SHOWN).map(row)} />
      ${rejections.length > SHOWN && html`<p class="hint">${text.moreRefused(count(rejections.length - SHOWN))}</p>`}
      ${isCut && html`<p class="hint">${text.cut}</p>`}
    </section>`;
}

const subjectOf = ({ kind, campaign_id: campaign }, name = text.kind(kind)) => html`
  <a href=${kind === 'contacts' ? to('campaigns', campaign) : to(kind)}>${name}</a>`;

export function ImportTable({ imports, label }) {
  return html`<${Table} label=${label} columns=${Object.values(text.columns)} rows=${imports.map((job) => ({
    key: job.id,
    cells: [
      html`<a href=${to('imports', job.id)}><${Time} of=${job.created_at} /></a>`, subjectOf(job), html`<${Share} of=${job} />`,
      count(job.rows), count(job.accepted), count(job.duplicates), count(job.rejected),
    ],
  }))} />`;
}

export function Imports() {
  const asked = Object.fromEntries(['kind', 'status', 'campaign_id'].map((name) => [name, place.value.query.get(name) ?? '']));
  const { kind, status, campaign_id: campaign } = asked;
  const pages = usePages((cursor) => call('GET', `/imports${query({ ...asked, cursor, limit: 50 })}`), [kind, status, campaign]);
  // No event tells of imports.
  useEvery(pages.reload, 5_000, Boolean(pages.data?.some(isRunning)));
  const filter = (name, values, label) => html`
    <${Choice} id=${name} label=${text.filters[name]} value=${asked[name]} options=${[['', text.any], ...values.map((value) => [value, label(value)])]}
      onChange=${(value) => go(to('imports', '', { ...asked, [name]: value }), { replace: true })} />`;
  const isFiltered = kind || status || campaign;
  return html`
    <${Heading} title=${text.title} />
    <div class="filters">${filter('kind', KINDS, text.kind)}${filter('status', STATUSES, words.status)}</div>
    ${campaign && html`<p class="notice">${text.ofOne}${' '}<a href=${to('campaigns', campaign)}>${text.itsPage}</a>${' '}
      <a href=${to('imports', '', { kind, status })}>${text.all}</a></p>`}
    <${Loaded} of=${pages}>${(imports) => imports.length
      ? html`<${ImportTable} imports=${imports} label=${text.title} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${isFiltered ? text.none : text.empty}</p>`}<//>`;
}

async function load(id) {
  const job = await call('GET', `/imports/${id}`);
  // It may have been deleted since.
  const campaign = job.campaign_id && await call('GET', `/campaigns/${job.campaign_id}`).catch(() => null);
  return { job, campaign };
}

export function Import({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  useEvery(loaded.reload, 5_000, Boolean(loaded.data && isRunning(loaded.data.job)));
  return html`
    <${Loaded} of=${loaded} isPage>${({ job, campaign }) => html`
      <${Heading} title=${text.titleOf(text.kind(job.kind))}><${Badge} of=${job.status} /><//>
      ${isRunning(job) && html`<div class="whole"><${Progress} done=${job.progress} total=${1} label=${shareOf(job)} /><span>${shareOf(job)}</span></div>`}
      ${job.error && html`<p class="error block" role="alert">${text.stopped(job.error)}</p>`}
      <${Facts} of=${[
        [text.facts.where, (job.kind !== 'contacts' || campaign) && subjectOf(job, campaign?.name)], [text.facts.by, job.created_by],
        [text.columns.began, html`<${Time} of=${job.created_at} />`], [text.facts.ended, job.ended_at && html`<${Time} of=${job.ended_at} />`],
        [text.columns.rows, count(job.rows)], [text.columns.accepted, count(job.accepted)], [text.columns.duplicates, count(job.duplicates)],
        [text.columns.rejected, count(job.rejected)], [text.facts.delimiter, text.delimiter(job.delimiter)],
      ]} />
      <p class="hint">${text.duplicatesHint}</p>
      <${Refused} rejections=${job.rejections} isCut=${job.rejections_truncated} name=${`refused-${id}.csv`} />`}<//>`;
}
