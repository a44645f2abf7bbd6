import { call, mayWrite, query } from '../api.js';
import { Area, Check, Field, FormDialog } from '../form.js';
import { html, useEffect, useState } from '../html.js';
import { useLive } from '../live.js';
import { Choice, Heading, Loaded, More, Table, Time, useAct, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { ImportDialog, ImportProgress } from './dnc_import.js';
import { Moment, momentOf } from './hours.js';
import { sentence, written } from './lines.js';

const text = words.dnc;
const SOURCES = ['manual', 'import', 'opt_out_voice', 'sms_stop', 'unsubscribe'];
const CHANNELS = ['phone', 'sms', 'email'];
/** Imports that are looked at together: those of one file. */
const MOST_JOBS = 10;
/** The person has said so. */
const OWN_WISH = ['opt_out_voice', 'sms_stop', 'unsubscribe'];

const whoOf = ({ phone_number: number, email }) => number ?? email;
/** One field takes both; the API has a name for each. */
const named = (who) => (who.includes('@') ? { email: who } : { phone_number: who });
/** What is wrong with either is said at that field. */
const atWho = (error) => {
  if (['phone_number', 'email'].includes(error.param)) error.param = 'who';
  throw error;
};
const channelsOf = ({ channels }) => text.channels(channels.map(text.channel));

const Source = ({ entry: { source, session_id: call, created_by: by } }) => html`
  ${text.source(source)}${call && html` <a href=${to('calls', call)}>${text.toCall}</a>`}${by && html` <span class="hint wrap">${text.by(by)}</span>`}`;

/** Is somebody on the list? What was found before one of `changes` may no longer be so; what is typed stays. */
function Look({ ask, changes }) {
  const [run, busy, error] = useAct();
  const [found, setFound] = useState(null);
  useEffect(() => setFound(null), [changes]);
  const submit = (event) => {
    event.preventDefault();
    const who = written(new FormData(event.target), 'who');
    setFound(null);
    if (who) run(async () => setFound({ who, entry: (await call('GET', `/dnc/check${query(named(who))}`)).entry }));
  };
  return html`
    <section class="stack tight panel tools" aria-labelledby="check">
      <h2 id="check">${text.check.title}</h2>
      <form class="with-button" aria-busy=${busy} onSubmit=${submit}>
        <input name="who" required maxlength="254" autocomplete="off" aria-label=${text.who} placeholder=${text.who} aria-describedby="check-error" />
        <button class="button quiet" disabled=${busy}>${text.check.button}</button>
      </form>
      <p class="error" id="check-error" role="alert">${error?.message}</p>
      <div role="status">${found && html`<${Found} of=${found} ask=${ask} />`}</div>
    </section>`;
}

function Found({ of: { who, entry }, ask }) {
  if (!entry) {
    return html`
      <p><strong>${who}</strong> ${text.check.free}</p>
      ${mayWrite() && html`<div class="actions left"><button class="button quiet small" onClick=${() => ask({ add: who })}>${text.check.add}</button></div>`}`;
  }
  return html`
    <p><strong>${whoOf(entry)}</strong> ${text.check.listed(channelsOf(entry))} <${Source} entry=${entry} />, <${Time} of=${entry.created_at} />.</p>
    ${entry.reason && html`<p class="wrap">${text.check.because} ${entry.reason}</p>`}
    ${mayWrite() && html`<div class="actions left"><button class="button quiet small danger" onClick=${() => ask({ remove: entry })}>${text.remove}</button></div>`}`;
}

function Add({ who, close, done }) {
  const act = async (values) => {
    const body = {
      ...named(written(values, 'who') ?? ''), channels: values.getAll('channels'), reason: written(values, 'reason'), requested_at: momentOf(values, 'requested_at'),
    };
    await done(await call('POST', '/dnc', body).catch(atWho));
  };
  return html`
    <${FormDialog} title=${text.adding.title} act=${act} submit=${text.adding.submit} close=${close}>
      <${Field} name="who" label=${text.who} hint=${text.adding.whoHint} defaultValue=${who} required maxlength="254" autocomplete="off" />
      <fieldset><legend>${text.columns.barred}</legend>
        ${CHANNELS.map((name) => html`<${Check} key=${name} name="channels" value=${name} label=${words.plain(text.channel(name))} />`)}
        <p class="hint">${text.adding.channelsHint}</p>
      </fieldset>
      <${Area} name="reason" label=${text.columns.reason} hint=${text.adding.reasonHint} maxlength="500" rows="2" />
      <${Moment} name="requested_at" label=${text.adding.requested} hint=${text.adding.requestedHint} />
    <//>`;
}

/** Asks once, and says what it means. */
function Remove({ entry, close, done }) {
  const act = async (values) => {
    await call('DELETE', `/dnc/${entry.id}${query({ reason: written(values, 'reason') ?? '' })}`);
    await done();
  };
  return html`
    <${FormDialog} title=${text.removing.title(whoOf(entry))} act=${act} submit=${text.removing.submit} close=${close} isDanger>
      <p>${text.removing.text(channelsOf(entry))}</p>
      <p>${OWN_WISH.includes(entry.source) ? text.removing.ownWish : text.removing.law}</p>
      <${Area} name="reason" label=${text.removing.reason} hint=${text.removing.reasonHint} required maxlength="500" rows="2" />
    <//>`;
}

function Filters({ asked }) {
  const narrow = (values) => go(to('dnc', '', { ...Object.fromEntries(place.value.query), ...asked, ...values }), { replace: true });
  const search = (event) => {
    event.preventDefault();
    narrow({ q: written(new FormData(event.target), 'entry') });
  };
  return html`
    <div class="filters">
      <form class="field" role="search" aria-label=${text.search.label} onSubmit=${search}>
        <label for="find-entry">${text.search.label}</label>
        <div class="with-button">
          <input id="find-entry" name="entry" type="search" maxlength="254" defaultValue=${asked.q} placeholder=${text.who} />
          <button class="button quiet">${text.search.button}</button>
        </div>
      </form>
      <${Choice} id="source" label=${text.columns.source} value=${asked.source} options=${[['', text.anySource], ...SOURCES.map((name) => [name, text.source(name)])]}
        onChange=${(source) => narrow({ source })} />
      <${Choice} id="removed" label=${text.which.label} value=${asked.removed} options=${[['', text.which.on], ['true', text.which.removed]]}
        onChange=${(removed) => narrow({ removed })} />
    </div>`;
}

export function DoNotCall() {
  const { query: given, env } = place.value;
  const asked = { q: given.get('q') ?? '', source: given.get('source') ?? '', removed: given.get('removed') ?? '' };
  const jobs = given.get('import')?.split(',').filter(Boolean).slice(0, MOST_JOBS) ?? [];
  const pages = usePages(
    (cursor) => call('GET', `/dnc${query({ ...(asked.q && named(asked.q)), source: asked.source, removed: asked.removed, cursor, limit: 50 })}`),
    [asked.q, asked.source, asked.removed],
  );
  useLive(({ type }) => type === 'session.opt_out_detected', pages.reload);
  /** What is asked in a dialog: `{ add }`, `{ remove }` or `{ load }`. */
  const [dialog, setDialog] = useState(null);
  const [said, setSaid] = useState('');
  const [changes, setChanges] = useState(0);
  const close = () => setDialog(null);
  const changed = async (what) => {
    setSaid(what);
    setChanges((count) => count + 1);
    await pages.reload();
  };
  const follow = (ids) => go(to('dnc', '', { ...asked, import: ids?.join() }), { replace: true });
  const goneRow = (entry) => ({
    key: entry.id,
    cells: [
      html`<strong class="wrap">${whoOf(entry)}</strong>`, words.plain(channelsOf(entry)), html`<span class="wrap">${entry.removed_reason}</span>`,
      html`<span class="wrap">${entry.removed_by ?? words.none}</span>`, html`<${Time} of=${entry.removed_at} />`,
    ],
  });
  const row = (entry) => ({
    key: entry.id,
    cells: [
      html`<strong class="wrap">${whoOf(entry)}</strong>`, words.plain(channelsOf(entry)), entry.reason ? html`<span class="wrap">${entry.reason}</span>` : words.none,
      html`<${Source} entry=${entry} />`, html`<${Time} of=${entry.created_at} />`,
      ...(mayWrite() ? [html`<button class="button quiet small danger" aria-label="${text.remove}: ${whoOf(entry)}" onClick=${() => setDialog({ remove: entry })}>${text.remove}</button>`] : []),
    ],
  });
  const { actions: _, ...onIt } = text.columns;
  const isGone = asked.removed === 'true';
  const columns = isGone ? text.goneColumns : mayWrite() ? text.columns : onIt;
  return html`
    <${Heading} title=${text.title} />
    <p>${text.intro(words.env[env])}</p>
    <${Look} changes=${changes} ask=${setDialog} />
    ${mayWrite() && html`
      <div class="actions left">
        <button class="button" onClick=${() => setDialog({ add: '' })}>${text.add}</button>
        <button class="button quiet" onClick=${() => setDialog({ load: true })}>${text.load}</button>
      </div>`}
    <p class="notice" role="status" hidden=${!said}>${said}</p>
    ${jobs.length > 0 && html`<${ImportProgress} key=${jobs.join()} ids=${jobs} done=${() => changed('')} close=${() => follow(null)} />`}
    <section class="stack tight" aria-labelledby="list">
      <h2 id="list">${text.list}</h2>
      <${Filters} asked=${asked} />
      <${Loaded} of=${pages}>${(entries) => entries.length
        ? html`<${Table} label=${text.title} columns=${Object.values(columns)} rows=${entries.map(isGone ? goneRow : row)} /><${More} next=${pages.next} />`
        : html`<p class="empty panel">${isGone ? text.noneGone : asked.q || asked.source ? text.none : text.empty}</p>`}<//>
    </section>
    ${dialog?.add !== undefined && html`<${Add} who=${dialog.add} close=${close} done=${(entry) => changed([text.added(whoOf(entry), channelsOf(entry)), entry.warning && sentence(entry.warning)].filter(Boolean).join(' '))} />`}
    ${dialog?.remove && html`<${Remove} entry=${dialog.remove} close=${close} done=${() => changed(text.removed(whoOf(dialog.remove)))} />`}
    ${dialog?.load && html`<${ImportDialog} close=${close} done=${follow} />`}`;
}
