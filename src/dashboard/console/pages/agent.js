import { call, mayWrite } from '../api.js';
import { Form } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { functions as allFunctions, voices as allVoices } from '../lists.js';
import { Badge, Confirm, Heading, Loaded, useAct, useLoad } from '../parts.js';
import { go, place, to } from '../place.js';
import { Unsaved, useEdition } from '../unsaved.js';
import { patchOf } from '../values.js';
import { words } from '../words.js';
import { Fields } from './agent_form.js';
import { definitionFrom, definitionOf, fieldsOf, linesOfField } from './definition.js';
import { DryRun } from './dry_run.js';
import { TalkNow } from './talk.js';
import { Versions } from './versions.js';

const text = words.agents;

async function load(id) {
  const [agent, functions, voices] = await Promise.all([call('GET', `/agents/${id}`), allFunctions(), allVoices()]);
  return { agent, functions, voices };
}

/** Names for the ids that a definition has. */
function namesFor({ functions, voices }) {
  const names = new Map([...functions, ...voices].map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? id;
}

/** Lines of a field that are seen without scrolling. */
const SEEN = 12;

/** All settings, for those who change none. */
const Reading = ({ definition, called }) => html`
  <dl class="facts long">
    ${[...fieldsOf(definition)].map(([path, value]) => [path, linesOfField(path, value, called)]).filter(([, lines]) => lines.length)
      .map(([path, lines]) => html`
        <div key=${path}><dt>${text.label[path] ?? path}</dt>
          <dd class="lines" tabindex=${lines.length > SEEN || lines[0].length > 500 ? '0' : undefined}>${lines.join('\n')}</dd></div>`)}
  </dl>`;

function Settings({ all, reload, changed }) {
  const { agent } = all;
  const form = useEdition(definitionOf(agent));
  // Another version was restored: the form begins anew.
  const version = useRef(agent.version);
  useEffect(() => {
    if (agent.version === version.current) return;
    version.current = agent.version;
    form.begin(definitionOf(agent));
  }, [agent.version]);
  useEffect(() => changed(form.isChanged), [form.isChanged]);
  const save = async (values) => {
    const wanted = definitionFrom(values, form.base);
    const done = form.saving(wanted);
    const patch = patchOf(form.base, wanted);
    if (!Object.keys(patch).length) return done(form.base, text.unchanged);
    const saved = await call('PATCH', `/agents/${agent.id}`, patch);
    version.current = saved.version;
    await reload();
    // What the API has made of it is what is shown: trimmed, or a default in place of nothing.
    return done(definitionOf(saved), text.savedAs(saved.version));
  };
  return html`
    <div class="editor" onInput=${form.type}>
      <${Form} key=${form.edition} act=${save} submit=${words.save}>
        <${Fields} definition=${form.shown} functions=${all.functions} voices=${all.voices} />
        <p class="hint" role="status">${form.isChanged ? text.unsaved : form.said}</p>
      <//>
      ${form.isChanged && html`<${Unsaved} asks=${text.confirmLeave} />`}
    </div>`;
}

function Actions({ agent, isChanged }) {
  const [run, busy, error] = useAct();
  const [asks, setAsks] = useState(null);
  const path = `/agents/${agent.id}`;
  const duplicate = async () => {
    const copy = await call('POST', `${path}/duplicate`, {});
    go(to('agents', copy.id), { isSure: true });
  };
  const remove = async () => {
    await call('DELETE', path);
    go(to('agents'), { isSure: true });
  };
  const confirmRemove = { ...text.confirmRemove, title: text.confirmRemove.title(agent.name) };
  return html`
    <div class="actions left">
      <button class="button quiet" disabled=${busy} onClick=${() => (isChanged ? setAsks({ asks: text.confirmLeave, act: duplicate }) : run(duplicate))}>${text.duplicate}</button>
      <button class="button quiet danger" disabled=${busy} onClick=${() => setAsks({ asks: confirmRemove, act: remove })}>${text.remove}</button>
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${asks && html`<${Confirm} ...${asks} close=${() => setAsks(null)} />`}`;
}

const VIEWS = { settings: Settings, versions: Versions, dry_run: DryRun, talk: TalkNow };

export function Agent({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  const [isChanged, setIsChanged] = useState(false);
  const asked = place.value.query.get('view');
  // Trying it out is a write to the API.
  const views = mayWrite() ? Object.keys(VIEWS) : ['settings', 'versions'];
  const view = views.includes(asked) ? asked : 'settings';
  const tab = (name) => html`
    <a key=${name} href=${to('agents', id, { view: name === 'settings' ? '' : name })} aria-current=${name === view ? 'page' : undefined}>${text.views[name]}</a>`;
  return html`
    <${Loaded} of=${loaded} isPage>${(all) => {
      const { agent } = all;
      const Other = VIEWS[view];
      return html`
        <${Heading} title=${agent.name}><${Badge}>${text.version(agent.version)}<//><//>
        ${mayWrite() && html`<${Actions} agent=${agent} isChanged=${isChanged} />`}
        <nav class="tabs" aria-label=${text.view}>${views.map(tab)}</nav>
        <!-- What is written in the form stays there while another part is looked at. -->
        <div key="settings" hidden=${view !== 'settings'}>
          ${mayWrite()
            ? html`<${Settings} all=${all} reload=${loaded.reload} changed=${setIsChanged} />`
            : html`<${Reading} definition=${definitionOf(agent)} called=${namesFor(all)} />`}
        </div>
        ${view !== 'settings' && html`
          <div key=${view} class="stack">
            ${isChanged && view !== 'versions' && html`<p class="notice">${text.notSaved}</p>`}
            <${Other} all=${all} reload=${loaded.reload} called=${namesFor(all)} isChanged=${isChanged} />
          </div>`}`;
    }}<//>`;
}
