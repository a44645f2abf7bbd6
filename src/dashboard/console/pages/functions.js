import { call, mayWrite, query } from '../api.js';
import { Area, Form, Secret } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { Badge, Confirm, Facts, Heading, Loaded, More, Note, Table, Time, useLoad, usePages } from '../parts.js';
import { go, to, wentOn } from '../place.js';
import { Unsaved, useEdition } from '../unsaved.js';
import { canonical, objectOf, patchOf, withoutNulls } from '../values.js';
import { words } from '../words.js';
import { Fields, NEW, headerNames, headersFrom, placed, settingsFrom } from './function_form.js';
import { sampleOf } from './parameters.js';

const text = words.functions;

export function Functions() {
  const pages = usePages((cursor) => call('GET', `/functions${query({ cursor, limit: 50 })}`), []);
  const row = ({ id, name, description, url, mcp, updated_at: changed }) => ({
    key: id,
    cells: [
      html`<a href=${to('functions', id)}>${name}</a>`, html`<span class="wrap">${cut(description)}</span>`,
      html`<span class="wrap">${mcp ? text.toolOf(mcp.tool, cut(url)) : cut(url)}</span>`, html`<${Time} of=${changed} />`,
    ],
  });
  return html`
    <${Heading} title=${text.title} />
    ${mayWrite() && html`<div class="actions left"><a class="button" href=${to('functions', 'new')}>${text.fresh}</a></div>`}
    <${Loaded} of=${pages}>${(functions) => functions.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${functions.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${text.empty}</p>`}<//>`;
}

const SHOWN = 200;
const cut = (words) => (words.length > SHOWN ? `${words.slice(0, SHOWN)}…` : words);

const Once = ({ secret }) => html`<p>${text.secretOnce}</p><${Secret} value=${secret} label=${text.secret} />`;

export function NewFunction() {
  const [made, setMade] = useState(null);
  const [isChanged, setIsChanged] = useState(false);
  const create = async (values) => {
    const { parameters, ...settings } = settingsFrom(values);
    try {
      setMade(await call('POST', '/functions', { ...withoutNulls(settings), parameters, headers: headersFrom(values, []) }));
      // What is shown now is another page.
      wentOn.value = true;
    } catch (error) {
      throw placed(error, values);
    }
  };
  if (made) {
    return html`
      <${Heading} key="made" title=${text.made(made.name)} />
      ${made.mcp ? html`<p>${text.madeOfTool(made.mcp.tool)}</p>` : html`<${Once} secret=${made.secret} />`}
      <p><a class="button" href=${to('functions', made.id)}>${text.open}</a></p>`;
  }
  return html`
    <${Heading} title=${text.fresh} />
    <div class="editor" onInput=${() => setIsChanged(true)}>
      <${Form} act=${create} submit=${text.create}><${Fields} of=${NEW} /><//>
      ${isChanged && html`<${Unsaved} asks=${text.confirmLeave} />`}
    </div>`;
}

function Actions({ its, reload, redraw }) {
  const [asks, setAsks] = useState(null);
  const [secret, setSecret] = useState(null);
  const path = `/functions/${its.id}`;
  const rotate = async () => {
    const rotated = await call('POST', `${path}/rotate_secret`, undefined);
    setSecret(rotated.secret);
    await reload();
  };
  const readAgain = async () => {
    await call('PATCH', path, { description: null, parameters: null });
    await reload();
    redraw();
  };
  const remove = async () => {
    await call('DELETE', path);
    go(to('functions'), { isSure: true });
  };
  const confirmRemove = { ...text.confirmRemove, title: text.confirmRemove.title(its.name) };
  return html`
    <div class="actions left">
      ${its.mcp
        ? html`<button class="button quiet" onClick=${() => setAsks({ asks: text.confirmReadAgain, act: readAgain })}>${text.readAgain}</button>`
        : html`<button class="button quiet" onClick=${() => setAsks({ asks: text.confirmRotate, act: rotate })}>${text.rotate}</button>`}
      <button class="button quiet danger" onClick=${() => setAsks({ asks: confirmRemove, act: remove })}>${text.remove}</button>
    </div>
    ${asks && html`<${Confirm} ...${asks} close=${() => setAsks(null)} />`}
    ${secret && !asks && html`<${Note} title=${text.rotated} close=${() => setSecret(null)}><${Once} secret=${secret} /><//>`}`;
}

function Settings({ its, reload }) {
  const form = useEdition(its);
  const save = async (values) => {
    const { base } = form;
    const { parameters, ...settings } = settingsFrom(values);
    const done = form.saving({ ...base, ...settings, parameters, header_names: headerNames(values) });
    const before = Object.fromEntries(Object.keys(settings).map((name) => [name, base[name]]));
    const patch = patchOf(before, settings);
    // It is replaced as a whole.
    if (canonical(parameters) !== canonical(base.parameters)) patch.parameters = parameters;
    const headers = headersFrom(values, base.header_names);
    if (Object.keys(headers).length) patch.headers = headers;
    if (!Object.keys(patch).length) return done(base, words.agents.unchanged);
    const saved = await call('PATCH', `/functions/${its.id}`, patch).catch((error) => { throw placed(error, values); });
    await reload();
    return done(saved, words.saved);
  };
  return html`
    <section class="stack" aria-labelledby="settings">
      <h2 id="settings">${text.settings}</h2>
      <div class="editor" onInput=${form.type}>
        <${Form} key=${form.edition} act=${save} submit=${words.save}><${Fields} of=${form.shown} />
          <p class="hint" role="status">${form.isChanged ? words.agents.unsaved : form.said}</p>
        <//>
        ${form.isChanged && html`<${Unsaved} asks=${text.confirmLeave} />`}
      </div>
    </section>`;
}

function Test({ its }) {
  const [result, setResult] = useState(null);
  const shown = useRef(null);
  useEffect(() => { if (result) shown.current.focus(); }, [result]);
  const test = async (values) => {
    setResult(null);
    setResult(await call('POST', `/functions/${its.id}/test`, { arguments: objectOf(values, 'arguments') }));
  };
  return html`
    <section class="stack" aria-labelledby="test">
      <h2 id="test">${text.test.title}</h2>
      <p class="hint">${its.mcp ? text.test.aboutTool : text.test.about}</p>
      <${Form} act=${test} submit=${text.test.run}>
        <${Area} name="arguments" label=${text.label.arguments} hint=${text.hint.arguments} rows="5" class="mono" spellcheck=${false} defaultValue=${JSON.stringify(sampleOf(its.parameters), null, 2)} />
      <//>
      ${result && html`
        <div class="stack tight" ref=${shown} tabindex="-1" role="status">
          <${Facts} of=${[
            [text.test.facts.status, html`<${Badge} of=${result.status === 'succeeded' ? 'completed' : 'failed'}>${words.plain(result.status)}<//>`],
            [text.test.facts.http, result.http_status || text.test.noAnswer], [text.test.facts.took, text.test.ms(result.duration_ms)],
          ]} />
          <p class="hint">${text.test.output}</p>
          <pre class="code" tabindex="0">${JSON.stringify(result.output, null, 2)}</pre>
        </div>`}
    </section>`;
}

/** All settings, for those who change none. */
const Reading = ({ its }) => html`
  <${Facts} of=${[
    [text.label.description, its.description], [its.mcp ? text.label.server : text.label.url, its.url], [text.label.method, its.mcp ? '' : its.method],
    [text.label.timeout_ms, its.timeout_ms],
    [text.label.headers, its.header_names.join(', ')],
  ]} />
  <h2>${text.label.parameters}</h2><pre class="code" tabindex="0">${JSON.stringify(its.parameters, null, 2)}</pre>`;

export function Func({ id }) {
  const loaded = useLoad(() => call('GET', `/functions/${id}`), [id]);
  /** The form is drawn anew with each. */
  const [drawing, setDrawing] = useState(0);
  return html`
    <${Loaded} of=${loaded} isPage>${(its) => html`
      <${Heading} title=${its.name} />
      ${mayWrite() && html`<${Actions} its=${its} reload=${loaded.reload} redraw=${() => setDrawing((before) => before + 1)} />`}
      <${Facts} of=${[
        [text.facts.tool, its.mcp?.tool], [text.facts.hint, its.mcp ? '' : its.secret_hint], [text.facts.version, its.version], [text.facts.changed, html`<${Time} of=${its.updated_at} />`],
        [text.facts.created, html`<${Time} of=${its.created_at} />`],
      ]} />
      ${mayWrite() ? html`<${Settings} key="settings-${drawing}" its=${its} reload=${loaded.reload} /><${Test} key="test-${its.version}" its=${its} />` : html`<${Reading} its=${its} />`}`}<//>`;
}
