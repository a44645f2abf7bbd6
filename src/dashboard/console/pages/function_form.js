// The form of a function: its address, when it is called, and with what.
import { Area, Field, Select } from '../form.js';
import { html } from '../html.js';
import { Rows } from '../rows.js';
import { numberOf, rowsOf, textOf } from '../values.js';
import { words } from '../words.js';
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

export const Fields = ({ of }) => html`
  <${Field} ...${about('name')} defaultValue=${of.name} required pattern="[A-Za-z0-9_\\-]{1,64}" maxlength="64" spellcheck=${false} autocomplete="off" data-message=${text.badName} />
  <${Area} ...${about('description')} defaultValue=${of.description} rows="3" required maxlength="2000" />
  <${Field} ...${about('url')} type="url" defaultValue=${of.url} required maxlength="2000" spellcheck=${false} />
  <div class="pair">
    <${Select} ...${about('method')} options=${METHODS.map((method) => [method, method])} defaultValue=${of.method} />
    <${Field} ...${about('timeout_ms')} type="number" min="100" max="120000" step="1" defaultValue=${of.timeout_ms} />
  </div>
  <${Parameters} schema=${of.parameters} />
  <fieldset class="stack"><legend>${text.label.headers}</legend>
    <p class="hint">${text.headersAbout}</p>
    <${Rows} name="headers" label=${text.label['headers[]']} add=${text.addHeader} values=${of.header_names.map((name) => ({ name, isKept: true }))} empty=${{ name: '', isKept: false }} isOrdered=${false} most=${HEADERS}>
      ${(at, header) => html`<${Header} at=${at} header=${header} />`}<//>
  </fieldset>`;

/** What the form says, but for its headers. */
export const settingsFrom = (values) => ({
  name: textOf(values, 'name'), description: textOf(values, 'description'), url: textOf(values, 'url'), method: values.get('method'),
  timeout_ms: numberOf(values, 'timeout_ms'), parameters: schemaFrom(values),
});

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
