// A person's own list becomes contacts of a campaign: it is read here, its columns are told what they are, and it is sent in pieces.
import { ask } from '../api.js';
import { count } from '../format.js';
import { html, signal, useEffect, useId, useRef, useState } from '../html.js';
import { Facts, Progress, Table, useAct } from '../parts.js';
import { place } from '../place.js';
import { words } from '../words.js';
import { DELIMITERS, look, pieces, refusedRows } from './csv.js';
import { Refused, isRunning, save } from './imports.js';

const text = words.upload;
const REMEMBERED = 'callboard.columns';
/** Sorts of lists whose columns are remembered. */
const MOST_REMEMBERED = 30;
const SAMPLES = 3;
const LONGEST_SAMPLE = 80;
const MOST_VARIABLES = 50;
const LONGEST_NAME = 40;
const POLL_MS = 5_000;
/** Where tables are cards, a preview is long. */
const isSmall = matchMedia('(max-width: 46rem)');
/** Questions in a row that may stay unanswered: five minutes. */
const MOST_MISSED = 60;

/** What a column may be, with the names that such columns have elsewhere: in small letters, without what is neither letter nor digit. */
const FIELDS = {
  phone_number: 'phonenumber phone phoneno phonenr phone1 telephone telephonenumber tel telno telnr mobile mobilenumber mobilephone mobileno cell '
    + 'cellphone cellnumber contactnumber msisdn e164 gsm telefon telefonnummer telefonnr rufnummer mobil mobilnummer handy handynummer '
    + 'numerodetelephone portable telefono celular movil telefoon telefoonnummer cellulare',
  first_name: 'firstname first givenname forename vorname prenom nombre nome voornaam imie',
  last_name: 'lastname last surname familyname nachname familienname nomdefamille apellido apellidos cognome achternaam nazwisko',
  email: 'email emailaddress mail mailaddress emailadresse mailadresse courriel adressemail correo correoelectronico indirizzoemail',
  external_id: 'externalid id customerid customerno customernumber contactid clientid userid memberid accountid recordid crmid reference ref '
    + 'kundennummer kundennr',
  timezone: 'timezone tz zeitzone fuseau fuseauhoraire zonahoraria',
  priority: 'priority prio prioritat priorite prioridad',
  not_before: 'notbefore callafter callnotbefore earliest earliestcall',
};
const KNOWN = new Map(Object.entries(FIELDS).flatMap(([field, names]) => names.split(' ').map((name) => [name, field])));
const VARIABLE = 'variable';
const ACCEPTED = '.csv,.tsv,.txt,text/csv,text/tab-separated-values,text/plain';

const plain = (header) => header.normalize('NFD').toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
const looksLikeNumber = (cell) => /^[+(]?\d[\d\s()./-]{5,}\d$/.test(cell.trim());
const looksLikeAddress = (cell) => /^\S+@\S+\.\S+$/.test(cell.trim());
/** A spreadsheet took the number for a quantity, and has rounded it. */
const isRounded = (cell) => /^\d([.,]\d+)?E\+\d+$/i.test(cell.trim());
const short = (cell) => (cell.length > LONGEST_SAMPLE ? `${cell.slice(0, LONGEST_SAMPLE)}…` : cell);
/** As prompts and templates can name it. */
function variableOf(header, n) {
  const name = header.normalize('NFC').replace(/[^\p{L}\p{N}]+/gu, '_').replace(/^_+|_+$/g, '');
  return name.slice(0, LONGEST_NAME) || `column_${n + 1}`;
}
const neededBy = ({ channel }) => (channel === 'email' ? 'email' : 'phone_number');

/** A time as a list writes it: without an offset it is one of this browser's own zone. */
function moment(cell) {
  const local = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?$/.exec(cell.trim());
  const at = local && new Date(`${local[1]}T${local[2] ?? '00:00'}`);
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : cell;
}

/** Lists have the same columns, whatever their order: places in a list, by the names there. */
const orderOf = (headers) => {
  const names = headers.map(plain);
  return [...names.keys()].sort((one, other) => (names[one] < names[other] ? -1 : Number(names[one] > names[other])));
};
const keyOf = (headers) => JSON.stringify(headers.map(plain).sort());

/** What was chosen for each of these columns before; `null`: nothing was. */
function remembered(headers) {
  try {
    const chosen = JSON.parse(localStorage.getItem(REMEMBERED))?.[keyOf(headers)];
    if (!Array.isArray(chosen)) return null;
    const columns = [];
    orderOf(headers).forEach((n, at) => { columns[n] = chosen[at]; });
    return columns;
  } catch {
    return null;
  }
}

function remember(columns) {
  try {
    const headers = columns.map(({ header }) => header);
    const key = keyOf(headers);
    const { [key]: _, ...others } = JSON.parse(localStorage.getItem(REMEMBERED)) ?? {};
    const kept = Object.entries(others).slice(1 - MOST_REMEMBERED);
    const chosen = orderOf(headers).map((n) => [columns[n].to, columns[n].name]);
    localStorage.setItem(REMEMBERED, JSON.stringify(Object.fromEntries([...kept, [key, chosen]])));
  } catch {
    // It is asked again next time.
  }
}

/** What each column is: as it was chosen before, by its name, or by what is in it. */
function columnsOf({ first, filled }, hasHeader, needed) {
  const [head] = first;
  const body = hasHeader ? first.slice(1) : first;
  const headers = head.cells.map((cell, n) => (hasHeader ? cell.trim() : '') || text.column(n + 1));
  const before = hasHeader ? remembered(headers) : null;
  const taken = new Set();
  const columns = headers.map((header, n) => {
    const samples = body.map(({ cells }) => (cells[n] ?? '').trim()).filter(Boolean);
    const isFull = body.length === 0 || samples.length > 0 || filled[n];
    const named = hasHeader ? KNOWN.get(plain(header)) : undefined;
    const [to, name] = before?.[n] ?? [named && !taken.has(named) ? named : isFull ? VARIABLE : '', variableOf(header, n)];
    taken.add(to);
    return { header, samples, to, name };
  });
  if (!before && !taken.has(needed)) {
    const looks = needed === 'email' ? looksLikeAddress : looksLikeNumber;
    const likely = columns.find(({ to, samples }) => to === VARIABLE && samples.filter(looks).length * 2 > samples.length);
    if (likely) likely.to = needed;
  }
  return columns;
}

/** What keeps the list from being sent. */
function problemsOf(columns, needed) {
  const problems = [];
  const chosen = columns.filter(({ to }) => to && to !== VARIABLE).map(({ to }) => to);
  const names = columns.filter(({ to }) => to === VARIABLE).map(({ name }) => name.trim());
  if (!chosen.includes(needed)) problems.push(text.needs(text.fields[needed]));
  for (const field of new Set(chosen.filter((to, n) => chosen.indexOf(to) !== n))) problems.push(text.twice(text.fields[field]));
  for (const name of new Set(names.filter((one, n) => names.indexOf(one) !== n))) problems.push(text.twice(name));
  for (const name of names) {
    if (!name || name.length > LONGEST_NAME) problems.push(text.nameLength(LONGEST_NAME));
    const snake = name.toLowerCase().replace(/[ -]/g, '_');
    if (Object.hasOwn(FIELDS, snake) || snake === 'phone') problems.push(text.reserved(name));
  }
  if (names.length > MOST_VARIABLES) problems.push(text.manyVariables(MOST_VARIABLES));
  return [...new Set(problems)];
}

/** Lists on their way, by campaign: they go on while the person looks at other pages. */
const uploads = signal(new Map());
const uploadOf = (id) => uploads.value.get(id);
/** Is a list of this campaign still on its way? */
export const isSending = (id) => uploadOf(id)?.state === 'sending';
function update(id, change) {
  uploads.value = new Map(uploads.value).set(id, { ...uploads.peek().get(id), ...change });
}
function forget(id) {
  const others = new Map(uploads.value);
  others.delete(id);
  uploads.value = others;
}
addEventListener('beforeunload', (event) => {
  if ([...uploads.peek().values()].some(({ state }) => state === 'sending')) event.preventDefault();
});

const pause = () => new Promise((over) => { setTimeout(over, POLL_MS); });

/** Follows an import to its end. A question that nobody answers is asked again. */
async function follow(base, job, tell) {
  let [latest, missed] = [job, 0];
  while (isRunning(latest)) {
    await pause();
    try {
      latest = await ask('GET', `${base}/imports/${job.id}`);
      missed = 0;
      tell(latest);
    } catch (error) {
      missed += 1;
      const mayPass = error.status === 0 || error.status === 429 || error.status >= 500;
      if (!mayPass || missed >= MOST_MISSED) throw error;
    }
  }
  if (latest.status === 'failed') throw new Error(words.imports.stopped(latest.error));
}

/** Sends the pieces one after the other, so that contacts stand in the campaign in the order of the list. Those that were sent are not again. */
async function send(id) {
  const { base, file, how, shape, imports: before } = uploads.peek().get(id);
  const imports = before.filter(({ status }) => status !== 'failed');
  const tell = (n) => (job) => {
    imports[n] = job;
    update(id, { imports: [...imports] });
  };
  update(id, { state: 'sending', error: null });
  try {
    let n = 0;
    for await (const piece of pieces(file, how, shape, () => {})) {
      if (n >= imports.length) tell(n)(await ask('POST', `${base}/campaigns/${id}/contacts/import`, piece));
      await follow(base, imports[n], tell(n));
      n += 1;
    }
    update(id, { state: 'done' });
  } catch (error) {
    update(id, { state: 'failed', error });
  }
}

function begin(id, { file, found, hasHeader, columns }) {
  const { slug, env } = place.value;
  const written = columns.map(({ to, name }) => to && {
    name: to === VARIABLE ? name.trim() : to, write: to === 'not_before' ? moment : (cell) => cell,
  });
  update(id, {
    // Where it was chosen: the person may go elsewhere meanwhile.
    base: `/t/${encodeURIComponent(slug)}/${env}`, file, how: found, shape: { hasHeader, columns: written.map((column) => column || null) },
    rows: found.count - (hasHeader ? 1 : 0), imports: [],
  });
  send(id);
}

function Sending({ upload, id, done }) {
  const { state, file, how, shape, rows, imports, error } = upload;
  const [run, busy, failure] = useAct();
  const sum = (field) => imports.reduce((all, job) => all + job[field], 0);
  const label = text.sent(count(sum('rows')), count(rows));
  useEffect(() => { done(); }, [state, sum('accepted')]);
  const rejections = imports.flatMap((job) => job.rejections);
  const download = () => run(async () => save(await refusedRows(file, how, shape.hasHeader, rejections), text.refusedName(file.name)));
  return html`
    <section class="stack" aria-labelledby="upload">
      <h3 id="upload"><bdi>${file.name}</bdi></h3>
      <div class="whole" role="status"><${Progress} done=${state === 'done' ? 1 : sum('rows')} total=${state === 'done' ? 1 : rows} label=${label} />
        <span>${state === 'done' ? text.finished(count(sum('rows'))) : label}</span></div>
      ${state === 'sending' && html`<p class="hint">${text.sending}</p>`}
      ${error && html`<p class="error block" role="alert">${text.broken} ${error.message}</p>`}
      <${Facts} of=${['accepted', 'duplicates', 'rejected'].map((field) => [words.imports.columns[field], count(sum(field))])} />
      ${sum('duplicates') > 0 && html`<p class="hint">${words.imports.duplicatesHint}</p>`}
      ${failure && html`<p class="error block" role="alert">${failure.message}</p>`}
      <${Refused} rejections=${rejections} isCut=${imports.some((job) => job.rejections_truncated)} heading="h4" download=${() => busy || download()} />
      <div class="actions left">
        ${state === 'failed' && html`<button type="button" class="button" onClick=${() => send(id)}>${text.goOn}</button>`}
        ${state !== 'sending' && html`<button type="button" class="button quiet" onClick=${() => forget(id)}>${text.another}</button>`}
      </div>
    </section>`;
}

/** What each column of the list is. */
function Columns({ columns, change }) {
  const options = [['', text.leaveOut], ...Object.keys(FIELDS).map((field) => [field, text.fields[field]]), [VARIABLE, text.variable]];
  const row = ({ header, samples, to, name }, n) => ({
    key: n,
    cells: [
      html`<span class="wrap">${short(header)}</span>`,
      samples.length ? html`<span class="wrap muted">${samples.slice(0, SAMPLES).map(short).join(' · ')}</span>` : words.none,
      html`<select aria-label=${text.becomes(short(header))} value=${to} onChange=${({ target }) => change(n, { to: target.value })}>
          ${options.map(([value, label]) => html`<option key=${value} value=${value} selected=${value === to}>${label}</option>`)}</select>
        ${to === VARIABLE && html`<input class="below" aria-label=${text.nameOf(short(header))} value=${name} maxlength="200" spellcheck=${false}
          onInput=${({ target }) => change(n, { name: target.value })} />`}`,
    ],
  });
  return html`<div class="mapping"><${Table} label=${text.columns} columns=${Object.values(text.columnTable)} rows=${columns.map(row)} /></div>`;
}

function Preview({ first, hasHeader, columns }) {
  const kept = columns.map((column, n) => ({ ...column, n })).filter(({ to }) => to);
  const rows = (hasHeader ? first.slice(1) : first).slice(0, 10);
  if (!kept.length || !rows.length) return null;
  const name = ({ to, name: variable }) => (to === VARIABLE ? variable : text.fields[to]);
  return html`
    <details open=${!isSmall.matches}><summary>${text.preview(rows.length)}</summary>
      <div class="sideways" tabindex="0" role="region" aria-label=${text.preview(rows.length)}>
        <${Table} label=${text.preview(rows.length)} columns=${kept.map(name)} rows=${rows.map(({ line, cells }) => ({
          key: line, cells: kept.map(({ n }) => html`<span class="wrap">${short((cells[n] ?? '').trim()) || words.none}</span>`),
        }))} />
      </div>
    </details>`;
}

function Mapped({ campaign, chosen, set, reread }) {
  const { file, found, hasHeader, columns } = chosen;
  const [problems, setProblems] = useState([]);
  const id = useId();
  const needed = neededBy(campaign);
  const change = (n, part) => {
    setProblems([]);
    set({ columns: columns.map((column, at) => (at === n ? { ...column, ...part } : column)) });
  };
  const start = () => {
    const wrong = problemsOf(columns, needed);
    setProblems(wrong);
    if (wrong.length) return;
    if (hasHeader) remember(columns);
    begin(campaign.id, chosen);
  };
  const rows = found.count - (hasHeader ? 1 : 0);
  const isShortened = columns.some(({ to, samples }) => to === 'phone_number' && samples.some(isRounded));
  return html`
    <section class="stack" aria-labelledby="columns">
      <h3 id="columns">${text.columns}</h3>
      <p role="status"><bdi>${file.name}</bdi>${': '}${text.found(count(rows), count(columns.length), text.encoding(found.encoding))}</p>
      ${found.encoding === 'windows-1252' && html`<p class="notice">${text.oldEncoding}</p>`}
      <div class="filters">
        <div class="field"><label for="${id}-delimiter">${text.delimiter}</label>
          <select id="${id}-delimiter" value=${found.delimiter} onChange=${({ target }) => reread(target.value)}>
            ${DELIMITERS.map((one) => html`<option key=${one} value=${one} selected=${one === found.delimiter}>${text.delimiters[one]}</option>`)}</select></div>
        <div class="field check"><label><input type="checkbox" checked=${hasHeader}
          onChange=${({ target }) => set({ hasHeader: target.checked, columns: columnsOf(found, target.checked, needed) })} />${' '}${text.hasHeader}</label></div>
      </div>
      <p class="hint">${text.columnsHint}</p>
      ${isShortened && html`<p class="error block" role="alert">${text.rounded}</p>`}
      <${Columns} columns=${columns} change=${change} />
      <${Preview} first=${found.first} hasHeader=${hasHeader} columns=${columns} />
      ${problems.length > 0 && html`<div class="error block" role="alert">${problems.map((problem) => html`<p key=${problem}>${problem}</p>`)}</div>`}
      <div class="actions left">
        <button type="button" class="button" disabled=${rows === 0} onClick=${start}>${text.start(count(rows))}</button>
        <button type="button" class="button quiet" onClick=${() => set(null)}>${text.other}</button>
      </div>
    </section>`;
}

function Chooser({ campaign }) {
  const [chosen, setChosen] = useState(null);
  const turn = useRef(0);
  const id = useId();
  useEffect(() => () => { turn.current += 1; }, []);
  const read = async (file, delimiter) => {
    const mine = ++turn.current;
    const tell = (state) => mine === turn.current && setChosen({ file, ...state });
    tell({ read: 0 });
    try {
      const found = await look(file, delimiter, (bytes) => tell({ read: bytes }));
      const hasHeader = !found.first[0].cells.some((cell) => looksLikeNumber(cell) || looksLikeAddress(cell));
      tell({ found, hasHeader, columns: columnsOf(found, hasHeader, neededBy(campaign)) });
    } catch (error) {
      tell({ error });
    }
  };
  if (chosen?.found) {
    return html`<${Mapped} campaign=${campaign} chosen=${chosen} reread=${(delimiter) => read(chosen.file, delimiter)}
      set=${(part) => setChosen(part && { ...chosen, ...part })} />`;
  }
  const isReading = chosen && !chosen.error;
  return html`
    <div class="stack tight">
      <div class="field">
        <label for=${id}>${text.choose}</label>
        <input id=${id} type="file" accept=${ACCEPTED} disabled=${isReading} aria-describedby="${id}-hint"
          onChange=${({ target }) => target.files[0] && read(target.files[0])} />
        <p class="hint" id="${id}-hint">${text.chooseHint}</p>
      </div>
      ${isReading && html`
        <div class="whole" role="status"><${Progress} done=${chosen.read} total=${chosen.file.size} label=${text.reading} /><span>${text.reading}</span></div>`}
      ${chosen?.error && html`<p class="error block" role="alert"><bdi>${chosen.file.name}</bdi>${': '}${chosen.error.message}</p>`}
    </div>`;
}

/** A list for a campaign, from the choice of the file to what has become of each of its rows. */
export function Upload({ campaign, done }) {
  const upload = uploadOf(campaign.id);
  return upload
    ? html`<${Sending} upload=${upload} id=${campaign.id} done=${done} />`
    : html`<${Chooser} campaign=${campaign} />`;
}
