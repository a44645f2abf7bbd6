// The form of a function: its address, when it is called, and with what. It is a URL of one's own, or a tool of an MCP server.
import { Area, Field, Select } from '../form.js';
import { html, useState } from '../html.js';
import { Rows } from '../rows.js';
import { numberOf, rowsOf, someText, textOf } from '../values.js';
import { words } from '../words.js';
import { McpTool } from './mcp_tool.js';
import { NONE, Parameters, schemaFrom } from './parameters.js';

const text = words.functions;
const METHODS = ['POST', 'PUT', 'PATCH'];
const HEADERS = 16;

export const NEW = { name: '', description: '', url: '', method: 'POST', timeout_ms: 10_000, parameters: NONE, header_names: [] };

const about = (name) => ({ name, label: text.label[name], hint: text.hint[name] });

/** One whose value is stored is not shown again; it keeps it, or gets another. */
const Header = ({ at, header: { name, isKept } }) => html`
  <div class="pair">
    <${Field} name="${at}.name" label=${text.label['headers[].name']} defaultValue=${name} readonly=${isKept} required maxlength="200" spellcheck=${false} autocomplete="off" />
    <${Field} name="${at}.value" label=${text.label['headers[].value']} hint=${isKept ? text.hint.kept : ''} required=${!isKept} maxlength="2000" spellcheck=${false} autocomplete="off" />
  </div>`;

const Headers = ({ names }) => html`
  <fieldset class="stack"><legend>${text.label.headers}</legend>
    <p class="hint">${text.headersAbout}</p>
    <${Rows} name="headers" label=${text.label['headers[]']} add=${text.addHeader} values=${names.map((name) => ({ name, isKept: true }))} empty=${{ name: '', isKept: false }} isOrdered=${false} most=${HEADERS}>
      ${(at, header) => html`<${Header} at=${at} header=${header} />`}<//>
  </fieldset>`;

const Name = ({ of }) => html`<${Field} ...${about('name')} defaultValue=${of.name} required pattern="[A-Za-z0-9_\\-]{1,64}" maxlength="64" spellcheck=${false} autocomplete="off" data-message=${text.badName} />`;

const TimeLimit = ({ of }) => html`<${Field} ...${about('timeout_ms')} type="number" min="100" max="120000" step="1" defaultValue=${of.timeout_ms} />`;

const UrlFields = ({ of }) => html`
  <${Name} of=${of} />
  <${Area} ...${about('description')} defaultValue=${of.description} rows="3" required maxlength="2000" />
  <${Field} ...${about('url')} type="url" defaultValue=${of.url} required maxlength="2000" spellcheck=${false} />
  <div class="pair">
    <${Select} ...${about('method')} options=${METHODS.map((method) => [method, method])} defaultValue=${of.method} />
    <${TimeLimit} of=${of} />
  </div>
  <${Parameters} schema=${of.parameters} />
  <${Headers} names=${of.header_names} />`;

/** What it takes is the server's to say, until somebody says it otherwise. */
const McpFields = ({ of }) => html`
  <${Field} name="url" label=${text.label.server} hint=${text.hint.server} type="url" defaultValue=${of.url} required maxlength="2000" spellcheck=${false} />
  <${Headers} names=${of.header_names} />
  <${McpTool} tool=${of.mcp?.tool ?? ''} isKnown=${!of.id} headersOf=${(values) => headersFrom(values, [])} />
  <${Name} of=${of} />
  <${Area} name="description" label=${text.label.description} hint=${text.hint.serversDescription} defaultValue=${of.description} rows="3" maxlength="2000" />
  <${TimeLimit} of=${of} />
  ${of.id && html`<${Parameters} schema=${of.parameters} />`}`;

const KINDS = ['url', 'mcp'];

/** A new one is chosen to be one or the other. */
export function Fields({ of }) {
  const [kind, setKind] = useState(of.mcp ? 'mcp' : 'url');
  return html`
    ${!of.id && html`<${Select} name="kind" label=${text.label.kind} options=${KINDS.map((name) => [name, text.kinds(name)])} defaultValue=${kind} onChange=${({ target }) => setKind(target.value)} />`}
    ${kind === 'mcp' ? html`<${McpFields} key="mcp" of=${of} />` : html`<${UrlFields} key="url" of=${of} />`}`;
}

/** What the form says, but for its headers. */
export function settingsFrom(values) {
  const settings = { name: textOf(values, 'name'), url: textOf(values, 'url'), timeout_ms: numberOf(values, 'timeout_ms') };
  if (!values.has('mcp.tool')) {
    return { ...settings, description: textOf(values, 'description'), method: values.get('method'), parameters: schemaFrom(values) };
  }
  // What the form has no fields for is not said: the server says it.
  const hasParameters = values.has('parameters') || values.has('parameters.others');
  return {
    ...settings, description: someText(values, 'description'), mcp: { tool: values.get('mcp.tool') },
    ...(hasParameters && { parameters: schemaFrom(values) }),
  };
}

const headersOf = (values) => rowsOf(values, 'headers', 'name', (at) => ({ name: textOf(values, `${at}.name`), value: textOf(values, `${at}.value`) }));

export const headerNames = (values) => headersOf(values).map(({ name }) => name);

/** What to send of the headers: new and changed ones, and `null` for each that is gone. */
export function headersFrom(values, before) {
  const given = headersOf(values);
  const gone = before.filter((name) => !given.some((header) => header.name === name));
  const told = given.filter(({ name, value }) => value || !before.includes(name));
  return Object.fromEntries([...gone.map((name) => [name, null]), ...told.map(({ name, value }) => [name, value])]);
}

/** The API names a header by its name, the form by its place. */
export function placed(error, values) {
  const name = error.param?.startsWith('headers.') ? error.param.slice('headers.'.length) : null;
  const at = name === null ? -1 : headersOf(values).findIndex((header) => header.name === name);
  if (at < 0) return error;
  return Object.assign(error, { param: `headers[${at}].name`, message: error.message.replace(error.param, text.thisHeader) });
}
