import { call, mayWrite, query } from '../api.js';
import { Form } from '../form.js';
import { html, useState } from '../html.js';
import { functions as allFunctions, voices as allVoices } from '../lists.js';
import { Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { Unsaved } from '../unsaved.js';
import { withoutNulls } from '../values.js';
import { words } from '../words.js';
import { Fields } from './agent_form.js';
import { NEW, definitionFrom } from './definition.js';

const text = words.agents;

function Search({ name }) {
  const find = (event) => {
    event.preventDefault();
    go(to('agents', '', { name: new FormData(event.target).get('name').trim() }), { replace: true });
  };
  return html`
    <form class="filters" role="search" aria-label=${text.title} onSubmit=${find}>
      <div class="field"><label for="name">${text.search}</label>
        <div class="with-button"><input id="name" name="name" type="search" maxlength="200" defaultValue=${name} /><button class="button quiet">${text.find}</button></div>
      </div>
    </form>`;
}

export function Agents() {
  const name = place.value.query.get('name') ?? '';
  const pages = usePages((cursor) => call('GET', `/agents${query({ name, cursor, limit: 50 })}`), [name]);
  const row = ({ id, name: its, brain, language, version, updated_at: changed }) => ({
    key: id,
    cells: [html`<a href=${to('agents', id)}>${its}</a>`, text.mode(brain.mode), language, version, html`<${Time} of=${changed} />`],
  });
  return html`
    <${Heading} title=${text.title} />
    ${mayWrite() && html`<div class="actions left"><a class="button" href=${to('agents', 'new')}>${text.fresh}</a></div>`}
    <${Search} key=${name} name=${name} />
    <${Loaded} of=${pages}>${(agents) => agents.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${agents.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${name ? text.none : text.empty}</p>`}<//>`;
}

export function NewAgent() {
  const loaded = useLoad(async () => {
    const [functions, voices] = await Promise.all([allFunctions(), allVoices()]);
    return { functions, voices };
  }, []);
  const [isChanged, setIsChanged] = useState(false);
  const create = async (values) => {
    const agent = await call('POST', '/agents', withoutNulls(definitionFrom(values, NEW)));
    go(to('agents', agent.id), { isSure: true });
  };
  return html`
    <${Heading} title=${text.fresh} />
    <${Loaded} of=${loaded}>${({ functions, voices }) => html`
      <div class="editor" onInput=${() => setIsChanged(true)}>
        <${Form} act=${create} submit=${text.create}><${Fields} definition=${NEW} functions=${functions} voices=${voices} /><//>
        ${isChanged && html`<${Unsaved} asks=${text.confirmLeave} />`}
      </div>`}<//>`;
}
