// What a function takes: as fields, where these can say it, else as the JSON Schema itself.
import { ApiError } from '../../common.js';
import { Area, Check, Field, Select } from '../form.js';
import { html, useRef, useState } from '../html.js';
import { Rows } from '../rows.js';
import { isObject, linesOf, objectOf, rowsOf, someText, textOf } from '../values.js';
import { words } from '../words.js';

const text = words.functions;
const TYPES = ['string', 'number', 'integer', 'boolean', 'date'];
const MOST = 50;

export const NONE = { type: 'object', properties: {}, additionalProperties: false };

/** A field that nobody sees: whether parameters that are not listed are let through stays as it was. */
const OTHERS = 'parameters.others';

const has = (value, allowed) => isObject(value) && Object.keys(value).every((name) => allowed.includes(name));
const areTexts = (value) => Array.isArray(value) && value.every((one) => typeof one === 'string' && one.trim() === one && one && !one.includes('\n'));

/** One property as the fields have it; `null`: it says more. */
function fieldOf([name, property], required) {
  if (!has(property, ['type', 'description', 'enum', 'format']) || !TYPES.includes(property.type) || property.type === 'date') return null;
  const { type, description = '', enum: choices = [], format } = property;
  const isDate = type === 'string' && format === 'date';
  const isPlain = typeof description === 'string' && areTexts(choices) && (!choices.length || (type === 'string' && !isDate)) && (!format || isDate);
  return isPlain ? { name, type: isDate ? 'date' : type, description, choices, required: required.includes(name) } : null;
}

/** The fields that say what this schema says; `null`: there are none. */
export function simple(schema) {
  if (!has(schema, ['type', 'properties', 'required', 'additionalProperties']) || schema.type !== 'object') return null;
  const { properties = {}, required = [], additionalProperties = true } = schema;
  if (!isObject(properties) || !areTexts(required) || typeof additionalProperties !== 'boolean') return null;
  if (!required.every((name) => Object.hasOwn(properties, name))) return null;
  const fields = Object.entries(properties).map((property) => fieldOf(property, required));
  return fields.length <= MOST && fields.every(Boolean) ? fields : null;
}

function propertyFrom(values, at) {
  const type = values.get(`${at}.type`);
  const description = someText(values, `${at}.description`);
  const choices = type === 'string' ? linesOf(values, `${at}.choices`) : [];
  return {
    ...(type === 'date' ? { type: 'string', format: 'date' } : { type }), ...(description && { description }), ...(choices.length && { enum: choices }),
  };
}

/** The schema that the form says. */
export function schemaFrom(values) {
  if (values.has('parameters')) return objectOf(values, 'parameters');
  const rows = rowsOf(values, 'parameters', 'name', (at) => ({
    name: textOf(values, `${at}.name`), property: propertyFrom(values, at), isRequired: values.has(`${at}.required`),
  }));
  const twice = rows.findIndex(({ name }, n) => rows.findIndex((other) => other.name === name) < n);
  if (twice >= 0) throw new ApiError(text.twice, { param: `parameters[${twice}].name` });
  const required = rows.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const others = values.get(OTHERS);
  return {
    type: 'object', properties: Object.fromEntries(rows.map(({ name, property }) => [name, property])), ...(required.length && { required }),
    ...(others && { additionalProperties: others === 'true' }),
  };
}

function Parameter({ at, parameter }) {
  const [type, setType] = useState(parameter.type);
  const about = (name) => ({ name: `${at}.${name}`, label: text.label[`parameters[].${name}`], hint: text.hint[`parameters[].${name}`] });
  return html`
    <div class="pair">
      <${Field} ...${about('name')} defaultValue=${parameter.name} required maxlength="64" spellcheck=${false} />
      <${Select} ...${about('type')} options=${TYPES.map((name) => [name, text.types(name)])} defaultValue=${parameter.type} onChange=${({ target }) => setType(target.value)} />
    </div>
    <${Field} ...${about('description')} defaultValue=${parameter.description} maxlength="1000" />
    ${type === 'string' && html`<${Area} ...${about('choices')} defaultValue=${parameter.choices.join('\n')} rows="2" />`}
    <${Check} ...${about('required')} defaultChecked=${parameter.required} />`;
}

/** `schema` is what they are at first. */
export function Parameters({ schema }) {
  const [now, setNow] = useState({ schema, isText: !simple(schema), said: '' });
  const place = useRef(null);
  const turn = () => {
    const values = new FormData(place.current.closest('form'));
    try {
      const written = schemaFrom(values);
      const isSimple = Boolean(simple(written));
      setNow({ schema: written, isText: !now.isText || !isSimple, said: now.isText && !isSimple ? text.notSimple : '' });
    } catch (error) {
      setNow({ ...now, said: error.message });
    }
  };
  return html`
    <fieldset class="stack" ref=${place} onInput=${() => now.said && setNow({ ...now, said: '' })}><legend>${text.label.parameters}</legend>
      <p class="hint">${text.parametersAbout}</p>
      ${!now.isText && html`<input type="hidden" name=${OTHERS} value=${now.schema.additionalProperties} />`}
      ${now.isText
        ? html`<${Area} key="text" name="parameters" label=${text.asSchema} hint=${text.hint.parameters} rows="14" class="mono" spellcheck=${false} defaultValue=${JSON.stringify(now.schema, null, 2)} />`
        : html`<${Rows} key="fields" name="parameters" label=${text.label['parameters[]']} add=${text.addParameter} values=${simple(now.schema)} isOrdered=${false} most=${MOST}
            empty=${{ name: '', type: 'string', description: '', choices: [], required: false }}>${(at, parameter) => html`<${Parameter} at=${at} parameter=${parameter} />`}<//>`}
      <p class="error" role="status">${now.said}</p>
      <div class="actions left"><button type="button" class="button quiet small" onClick=${turn}>${now.isText ? text.asFields : text.asSchema}</button></div>
    </fieldset>`;
}

const SAMPLES = { string: '', number: 0, integer: 0, boolean: false };

/** Arguments to begin a test with. */
export function sampleOf({ properties }) {
  const today = new Date().toISOString().slice(0, 10);
  const value = ({ type, format, enum: choices, default: given }) => given ?? choices?.[0] ?? (format === 'date' ? today : SAMPLES[type] ?? null);
  return Object.fromEntries(Object.entries(isObject(properties) ? properties : {}).map(([name, property]) => [name, isObject(property) ? value(property) : null]));
}
