// What pages are made of.
import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from './html.js';
import { count, time } from './format.js';
import { place, wentOn } from './place.js';
import { words } from './words.js';

/** Pages below each other; whoever looks for more filters. */
const MOST_PAGES = 10;

/**
 * Loads something, and again when one of `inputs` changes or `reload` is called; what was there stays to be seen meanwhile.
 * An answer that comes after a later one was asked for is dropped.
 */
export function useLoad(load, inputs) {
  const [state, setState] = useState({ data: null, error: null });
  const latest = useRef(0);
  const run = useCallback(async () => {
    const mine = ++latest.current;
    try {
      const data = await load();
      if (mine === latest.current) setState({ data, error: null });
    } catch (error) {
      if (mine === latest.current) setState(({ data }) => ({ data, error }));
    }
  }, inputs);
  // Asked for before it is painted that it loads.
  useLayoutEffect(() => {
    setState((before) => (before.data || before.error ? { data: null, error: null } : before));
    run();
    return () => { latest.current += 1; };
  }, [run]);
  return { ...state, reload: run };
}

/** What is shown of something that loads: itself, that it loads, or what went wrong. `isPage`: all of a page; then it may not be there. */
export function Loaded({ of: { data, error, reload }, children, isPage = false }) {
  if (isPage && !data && error?.status === 404) {
    return html`<${Heading} title=${words.noObject.title} /><p>${words.noObject.text(words.env[place.value.env])}</p>`;
  }
  return html`
    ${isPage && error && !data && html`<${Heading} title=${words.notLoaded} />`}
    ${error && html`<p class="error block" role="alert">${error.message}${' '}
      <button class="button quiet small" onClick=${reload}>${words.again}</button></p>`}
    ${data ? children(data) : !error && html`<p class="muted" role="status">${words.loading}</p>`}`;
}

/** The page's name, in the tab too. */
export function Heading({ title, children }) {
  const heading = useRef(null);
  useEffect(() => { document.title = `${title} · ${words.product}`; }, [title]);
  useEffect(() => {
    if (wentOn.value) heading.current.focus();
    wentOn.value = false;
  }, []);
  return html`<div class="page-head"><h1 id="title" ref=${heading} tabindex="-1"><bdi>${title}</bdi>${' '}${children}</h1></div>`;
}

const GOOD = ['completed', 'running', 'in_progress', 'active'];
const BAD = ['failed', 'suspended', 'busy', 'canceled', 'skipped', 'down'];

export function Badge({ of, children }) {
  const kind = GOOD.includes(of) ? 'good' : BAD.includes(of) ? 'bad' : '';
  return html`<span class="badge ${kind}">${children ?? words.status(of)}</span>`;
}

export const Time = ({ of, format = time }) =>
  of ? html`<time datetime=${of} title=${new Date(of).toString()}>${format(of)}</time>` : words.none;

/** A list of `[name, value]`; what has no value is left out. */
export const Facts = ({ of }) => html`
  <dl class="facts">
    ${of.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => html`
      <div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;

/** A table that becomes cards on a phone: each cell says its column there. */
export const Table = ({ label, columns, rows }) => html`
  <div class="table panel">
    <table aria-label=${label}>
      <thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
      <tbody>${rows.map(({ key, cells }) => html`
        <tr key=${key}>${cells.map((cell, n) => html`<td data-column=${columns[n]}><div>${cell}</div></td>`)}</tr>`)}</tbody>
    </table>
  </div>`;

export const Choice = ({ id, label, value, options, onChange }) => html`
  <div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${({ target }) => onChange(target.value)}>
      ${options.map(([name, text]) => html`<option value=${name} selected=${name === value}>${text}</option>`)}
    </select>
  </div>`;

/**
 * A text that filters once it is written: on Enter, or when the field is left. `value` is what the address says, `known` what may be chosen.
 */
export function Typed({ id, label, hint, value, known, onChange, ...rest }) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      <input id=${id} value=${draft} maxlength="200" list=${known && `${id}-known`} aria-describedby=${hint && `${id}-hint`} ...${rest}
        onInput=${({ target }) => setDraft(target.value)} onChange=${({ target }) => onChange(target.value)} />
      ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
      ${known && html`<datalist id="${id}-known">${known.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}
    </div>`;
}

/** How far something is, also for those who do not see it. */
export function Progress({ done, total, label }) {
  const share = total > 0 ? Math.min(done / total, 1) : 0;
  return html`<progress max="1" value=${share} aria-label=${label}>${label}</progress>`;
}

/** Pages of a list, one below the other. `load(cursor)` answers a list of the API. A reload brings all of them up to date. */
export function usePages(load, inputs) {
  const shown = useRef(1);
  const all = useLoad(async () => {
    const rows = [];
    let page = null;
    for (let n = 0; n < shown.current && (n === 0 || page.has_more); n += 1) {
      page = await load(page?.next_cursor);
      rows.push(...page.data);
    }
    // What moves while it is read may come twice.
    return { rows: [...new Map(rows.map((row) => [row.id, row])).values()], hasMore: page.has_more };
  }, inputs);
  useEffect(() => () => { shown.current = 1; }, inputs);
  const next = () => {
    shown.current += 1;
    return all.reload();
  };
  const rows = all.data?.rows ?? null;
  return { ...all, data: rows, next: !all.data?.hasMore ? null : shown.current < MOST_PAGES ? next : rows.length };
}

/** What is below a list: a button for the next page, or, if `next` is a number, that so many are shown and no more. */
export const More = ({ next }) => next && (typeof next === 'number'
  ? html`<p class="hint">${words.notAll(count(next))}</p>`
  : html`<button class="button quiet" onClick=${next}>${words.more}</button>`);

/**
 * A dialog that is open while it is there. `leave` closes it, which gives the focus back to the button that has opened it; the browser
 * tells of that later, when the same dialog may be open anew.
 */
export function useDialog(close) {
  const dialog = useRef(null);
  const isLeft = useRef(false);
  useEffect(() => dialog.current.showModal(), []);
  const closed = () => {
    if (isLeft.current) return;
    isLeft.current = true;
    close();
    // What has opened it may be gone by now, as a row that was deleted is.
    if (document.activeElement === document.body) document.getElementById('title')?.focus();
  };
  const leave = () => {
    dialog.current?.close();
    closed();
  };
  return { dialog, leave, closed };
}

/** Asks once before it does what cannot be undone. `act` may fail: the reason is shown, and the person may try again. */
export function Confirm({ asks, act, close, isDanger = true }) {
  const [state, setState] = useState({ busy: false, error: null });
  const { dialog, leave, closed } = useDialog(close);
  const yes = async (event) => {
    event.preventDefault();
    setState({ busy: true, error: null });
    try {
      await act();
      leave();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`
    <dialog ref=${dialog} class="narrow" aria-labelledby="confirm-title" aria-describedby="confirm-text" onClose=${closed}
      onCancel=${(event) => state.busy && event.preventDefault()}>
      <form class="stack" aria-busy=${state.busy} onSubmit=${yes}>
        <h2 id="confirm-title">${asks.title}</h2>
        <p id="confirm-text">${asks.text}</p>
        ${state.error && html`<p class="error block" role="alert">${state.error.message}</p>`}
        <div class="actions">
          <button type="button" class="button quiet" autofocus disabled=${state.busy} onClick=${leave}>${asks.no}</button>
          <button class="button ${isDanger ? 'danger' : ''}" disabled=${state.busy}>${asks.yes}</button>
        </div>
      </form>
    </dialog>`;
}

/** Something to read, in a dialog. */
export function Note({ title, close, children }) {
  const { dialog, leave, closed } = useDialog(close);
  return html`
    <dialog ref=${dialog} aria-labelledby="note-title" onClose=${closed}>
      <div class="stack">
        <h2 id="note-title">${title}</h2>
        ${children}
        <div class="actions"><button class="button" onClick=${leave}>${words.close}</button></div>
      </div>
    </dialog>`;
}

/** Runs what a button does, once at a time; answers `[run, busy, error]`. */
export function useAct() {
  const [state, setState] = useState({ busy: false, error: null });
  const run = async (act) => {
    if (state.busy) return false;
    setState({ busy: true, error: null });
    try {
      await act();
      setState({ busy: false, error: null });
      return true;
    } catch (error) {
      setState({ busy: false, error });
      return false;
    }
  };
  return [run, state.busy, state.error];
}
