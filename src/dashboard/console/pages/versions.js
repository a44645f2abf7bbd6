// How an agent came to be what it is: its versions, what differs between any two, and the way back.
import { call, mayWrite, query } from '../api.js';
import { difference } from '../difference.js';
import { html, useState } from '../html.js';
import { Badge, Choice, Confirm, Loaded, More, Table, Time, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { patchOf, same } from '../values.js';
import { words } from '../words.js';
import { definitionOf, fieldsOf, linesOfField } from './definition.js';

const text = words.agents.versions;
const { label } = words.agents;
/** Of one field. */
const MOST_LINES = 2_000;

/** Names of the fields that differ. */
function changed(before, after) {
  const [was, is] = [fieldsOf(definitionOf(before)), fieldsOf(definitionOf(after))];
  // A list of nothing is shown as nothing.
  const known = (value) => (Array.isArray(value) && !value.length ? null : value);
  return [...new Set([...was.keys(), ...is.keys()])].filter((path) => !same(known(was.get(path)), known(is.get(path))));
}

const Line = ({ kind, line, count }) => {
  if (kind === 'skipped') return html`<li class="hint">${text.skipped(count)}</li>`;
  if (kind === 'same') return html`<li>${line}</li>`;
  const Mark = kind === 'removed' ? 'del' : 'ins';
  return html`<li class=${kind}><${Mark}><span class="visually-hidden">${text[kind]} </span>${line}<//></li>`;
};

function Difference({ before, after, called }) {
  const [was, is] = [fieldsOf(definitionOf(before)), fieldsOf(definitionOf(after))];
  const paths = changed(before, after);
  if (!paths.length) return html`<p class="muted">${text.equal}</p>`;
  return paths.map((path) => {
    const lines = difference(linesOfField(path, was.get(path), called), linesOfField(path, is.get(path), called));
    return html`
      <section key=${path} class="stack tight">
        <h3>${label[path] ?? path}</h3>
        <ol class="difference panel" tabindex="0" aria-label=${label[path] ?? path}>
          ${lines.slice(0, MOST_LINES).map((line, n) => html`<${Line} key=${n} ...${line} />`)}
          ${lines.length > MOST_LINES && html`<li class="hint">${text.cut(lines.length - MOST_LINES)}</li>`}
        </ol>
      </section>`;
  });
}

function Compare({ id, rows, called }) {
  const wanted = (name, otherwise) => rows.find(({ version }) => String(version) === place.value.query.get(name)) ?? otherwise;
  const [from, till] = [wanted('from', rows[1]), wanted('to', rows[0])];
  if (!from) return html`<p class="muted">${text.choose}</p>`;
  const choose = (change) => go(to('agents', id, { view: 'versions', from: from.version, to: till.version, ...change }), { replace: true });
  const options = rows.map(({ version }) => [String(version), words.agents.version(version)]);
  return html`
    <div class="filters">
      <${Choice} id="from" label=${text.from} value=${String(from.version)} options=${options} onChange=${(version) => choose({ from: version })} />
      <${Choice} id="to" label=${text.to} value=${String(till.version)} options=${options} onChange=${(version) => choose({ to: version })} />
    </div>
    <${Difference} before=${from} after=${till} called=${called} />`;
}

/** `isChanged`: the form of the settings has changes that are not saved. */
export function Versions({ all: { agent }, reload, called, isChanged }) {
  const pages = usePages(async (cursor) => {
    const page = await call('GET', `/agents/${agent.id}/versions${query({ cursor, limit: 20 })}`);
    return { ...page, data: page.data.map((row) => ({ ...row, id: row.version })) };
  }, [agent.id, agent.version]);
  const [asked, setAsked] = useState(null);
  const [said, setSaid] = useState('');
  const restore = async () => {
    const restored = await call('PATCH', `/agents/${agent.id}`, patchOf(definitionOf(agent), definitionOf(asked)));
    await reload();
    setSaid(text.restored(asked.version, restored.version));
  };
  const what = (row, before) => {
    if (row.version === 1) return text.first;
    return before ? changed(before, row).map((path) => label[path] ?? path).join(', ') || text.same : words.none;
  };
  const row = (version, n, rows) => ({
    key: version.version,
    cells: [
      html`${version.version}${version.version === agent.version && html` <${Badge}>${text.current}<//>`}`, html`<${Time} of=${version.created_at} />`,
      what(version, rows[n + 1]),
      ...(mayWrite() ? [version.version !== agent.version
        && html`<button class="button quiet small" aria-label=${text.restoreOf(version.version)} onClick=${() => setAsked(version)}>${text.restore}</button>`] : []),
    ],
  });
  const columns = [...Object.values(text.columns), ...(mayWrite() ? [words.campaign.columns.actions] : [])];
  const asks = asked && { ...text.confirm, title: text.confirm.title(asked.version), text: text.confirm[isChanged ? 'unsaved' : 'text'](asked.version) };
  return html`
    <p class="notice" role="status" hidden=${!said}>${said}</p>
    <${Loaded} of=${pages}>${(rows) => html`
      <section class="stack" aria-labelledby="difference"><h2 id="difference">${text.compare}</h2><${Compare} id=${agent.id} rows=${rows} called=${called} /></section>
      <section class="stack tight"><h2>${words.agents.views.versions}</h2>
        <${Table} label=${words.agents.views.versions} columns=${columns} rows=${rows.map(row)} /><${More} next=${pages.next} />
      </section>`}<//>
    ${asks && html`<${Confirm} asks=${asks} act=${restore} close=${() => setAsked(null)} isDanger=${isChanged} />`}`;
}
