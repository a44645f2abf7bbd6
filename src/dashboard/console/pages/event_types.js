// The catalogue of events: when each is sent, and what it looks like, made from the schemas that the API publishes.
import { html } from '../html.js';
import { Heading, Loaded, useLoad } from '../parts.js';
import { to } from '../place.js';
import { words } from '../words.js';
import { Code, inGroups, unmarked } from './pieces.js';
import { typesOf } from './webhooks.js';

const text = words.events.types;
/** Levels of fields; ends schemas that contain themselves. */
const DEPTH = 8;
/** What a reader takes for real, by event and name, or by name. All else follows from its type. */
const SAMPLES = {
  'session.ended.end_reason': 'completed', 'session.disposition_set.evaluator': 'llm', 'session.failed.end_reason': 'voicemail', 'session.failed.status': 'voicemail',
  from_number: '+14155550100', to_number: '+14155550123', phone_number: '+14155550123', transfer_number: '+14155550100',
  email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace', name: 'Appointment booking', content: 'Hello! How can I help you?',
  disposition_code: 'interested', disposition_note: 'Wants to be called back.', arguments: { day: '2026-01-16' },
  client_reference_id: 'order-1042', processor_payment_intent_id: 'pi_example', currency: 'USD', threshold_cents: 1000,
  url: 'https://example.com/callboard', room_url: 'https://example.com/room', recording_url: 'https://example.com/recording',
  transcript_url: 'https://example.com/transcript.json', error_code: 'timeout', error_message: 'No answer in time.', last_status: 503,
  started_at: '2026-01-15T09:29:18.000Z', window_start: '2026-01-14T09:30:00.000Z', expires_at: '2026-01-16T09:30:00.000Z',
  purge_after: '2026-01-16T09:30:00.000Z', next_open_at: '2026-01-16T09:30:00.000Z',
};
const A_TIME = '2026-01-15T09:30:00.000Z';

/** A schema as one flat object: references, `allOf` and "or null" are resolved. What is said where it is used wins. */
function flat(document, schema) {
  const { $ref: reference, allOf: parts = [], anyOf = [], oneOf = [], ...own } = schema;
  const form = [...anyOf, ...oneOf].find(({ type }) => type !== 'null');
  const referred = reference && document.components.schemas[reference.split('/').at(-1)];
  const all = [referred, ...parts, form].filter(Boolean).map((part) => flat(document, part)).concat(own);
  return all.reduce((one, two) => ({ ...one, ...two, properties: { ...one.properties, ...two.properties } }), {});
}

/** The same for each name, so that examples fit each other. */
function idOf(name) {
  const sum = [...name].reduce((all, letter) => all + letter.charCodeAt(0), 0);
  return `0199a3f0-5d2c-7b41-9e6a-${(sum * 0x9e3779b97).toString(16).padStart(12, '0').slice(-12)}`;
}

function likely(name, schema, event) {
  const known = SAMPLES[`${event}.${name}`];
  // What is nested may have a field of the same name.
  if (known !== undefined && schema.enum?.includes(known)) return known;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum.find((value) => value !== null);
  if (SAMPLES[name] !== undefined) return SAMPLES[name];
  // Descriptions of open sets begin with a value.
  const described = /^`([^`]*)`/.exec(schema.description ?? '');
  if (described) return described[1];
  const type = [schema.type].flat().find((one) => one !== 'null');
  if (schema.format === 'date-time') return A_TIME;
  if (schema.format === 'uuid' || name.endsWith('_id') || name === 'id') return idOf(name);
  return { integer: 42, number: 0.5, boolean: true, object: {}, string: 'example' }[type] ?? null;
}

function sample(document, schema, name, event, depth = DEPTH) {
  const one = flat(document, schema);
  if (depth === 0) return null;
  if (one.items) return [sample(document, one.items, name, event, depth - 1)];
  const fields = Object.entries(one.properties);
  if (!fields.length) return likely(name, one, event);
  // As their author ordered them.
  const place = (field) => (one.required?.includes(field) ? one.required.indexOf(field) : fields.length);
  fields.sort(([a], [b]) => place(a) - place(b));
  return Object.fromEntries(fields.map(([field, its]) => [field, sample(document, its, field, event, depth - 1)]));
}

let document = null;
function documentOf() {
  const read = (answer) => (answer.ok ? answer.json() : Promise.reject(new Error(text.noExamples)));
  return (document ??= fetch('/openapi.json').then(read).catch((error) => {
    document = null; // it is asked again
    throw error;
  }));
}

async function load() {
  // The list of types is of use without examples, too.
  const [types, api] = await Promise.all([typesOf(), documentOf().catch(() => null)]);
  const exampleOf = ({ name }) => {
    const schema = api?.webhooks?.[name]?.post.requestBody.content['application/json'].schema;
    return { name, example: schema && JSON.stringify(sample(api, schema, '', name), null, 2) };
  };
  return { types, examples: new Map(types.map(exampleOf).map(({ name, example }) => [name, example])) };
}

const Type = ({ name, description, example }) => html`
  <article class="stack tight type" aria-labelledby="type-${name}">
    <h3 id="type-${name}"><code>${name}</code></h3>
    <p>${unmarked(description)}</p>
    ${example && html`<details><summary>${text.example}</summary><${Code} label=${text.exampleOf(name)} text=${example} /></details>`}
    <p class="links"><a href=${to('events', '', { type: name })} aria-label=${text.eventsOf(name)}>${text.events}</a>
      ${' '}<a href="/docs#event-${name}" aria-label=${text.fieldsOf(name)}>${text.fields}</a></p>
  </article>`;

export function EventTypes() {
  const loaded = useLoad(load, []);
  return html`
    <${Heading} title=${text.title} />
    <p>${text.intro}</p>
    <${Loaded} of=${loaded}>${({ types, examples }) => html`
      ${[...examples.values()].every((example) => !example) && html`<p class="notice">${text.noExamples}</p>`}
      ${inGroups(types).map(([group, its]) => html`
        <section class="stack" key=${group} aria-labelledby="group-${group}">
          <h2 id="group-${group}">${words.events.groups(group)}</h2>
          ${its.map((type) => html`<${Type} key=${type.name} ...${type} example=${examples.get(type.name)} />`)}
        </section>`)}`}<//>`;
}
