// What an agent is: read from the form, and shown field by field.
import { words } from '../words.js';
import { isObject, linesOf, numberOf, objectOf, rowsOf, someText, textOf } from '../values.js';

const text = words.agents;

/** As the API makes one of which nothing is said. */
export const NEW = {
  name: '', prompt: '', first_message: 'Hello! How can I help you?', language: 'en-US', voice_id: null,
  brain: { mode: 'scripted', replies: [] }, function_ids: [], dispositions: [], questions: [],
  recording: { enabled: false, channels: 'dual', consent: 'none', consent_message: null, retention_days: null, transfers: false },
  transfer: null, max_duration_seconds: 600, silence: { hangup_after_seconds: 30 }, opt_out: { enabled: true, phrases: [], key: null },
  turn_detection: { mode: 'vad', silence_ms: 500, unfinished_silence_ms: 1400, eager: true },
  interruption: { min_duration_ms: 200, min_words: 0, sensitivity: 'medium', resume: true },
};

/** Of an agent or of a version of it, what its user decides. */
export function definitionOf(view) {
  return Object.fromEntries(Object.keys(NEW).map((name) => [name, view[name]]));
}

function callFrom(values, at) {
  const [name, made] = [textOf(values, `${at}.call.name`), objectOf(values, `${at}.call.arguments`)];
  return name || Object.keys(made).length ? { name, arguments: made } : null;
}

function brainFrom(values) {
  const mode = values.get('brain.mode');
  if (mode === 'scripted') {
    return {
      mode,
      replies: rowsOf(values, 'brain.replies', 'say', (at) => ({
        hear: linesOf(values, `${at}.hear`), say: textOf(values, `${at}.say`), call: callFrom(values, at), hang_up: values.has(`${at}.hang_up`),
      })),
    };
  }
  const model = someText(values, 'brain.model');
  if (mode === 'realtime') return { mode, model };
  return { mode, model, temperature: numberOf(values, 'brain.temperature'), max_tokens: numberOf(values, 'brain.max_tokens') };
}

function transferFrom(values) {
  const number = textOf(values, 'transfer.number');
  const targets = rowsOf(values, 'transfer.targets', 'name', (at) => ({ name: textOf(values, `${at}.name`), number: textOf(values, `${at}.number`) }));
  return number || targets.length ? { number, targets } : null;
}

/** What the form says; functions in the order that they had before. */
export function definitionFrom(values, { function_ids: before }) {
  const chosen = values.getAll('function_ids');
  return {
    name: textOf(values, 'name'), prompt: textOf(values, 'prompt'), first_message: someText(values, 'first_message'),
    language: someText(values, 'language'), voice_id: someText(values, 'voice_id'), brain: brainFrom(values),
    function_ids: [...before.filter((id) => chosen.includes(id)), ...chosen.filter((id) => !before.includes(id))],
    dispositions: rowsOf(values, 'dispositions', 'code', (at) => ({
      code: textOf(values, `${at}.code`), label: someText(values, `${at}.label`), description: someText(values, `${at}.description`),
      // As the API shows it: only where it is so.
      ...(values.has(`${at}.declined`) && { declined: true }),
    })),
    questions: rowsOf(values, 'questions', 'key', (at) => ({
      key: textOf(values, `${at}.key`), text: textOf(values, `${at}.text`), type: values.get(`${at}.type`),
      options: linesOf(values, `${at}.options`), required: values.has(`${at}.required`),
    })),
    recording: {
      enabled: values.has('recording.enabled'), channels: values.get('recording.channels'), consent: values.get('recording.consent'),
      consent_message: someText(values, 'recording.consent_message'), retention_days: numberOf(values, 'recording.retention_days'),
      transfers: values.has('recording.transfers'),
    },
    transfer: transferFrom(values),
    max_duration_seconds: numberOf(values, 'max_duration_seconds'),
    silence: { hangup_after_seconds: numberOf(values, 'silence.hangup_after_seconds') },
    opt_out: { enabled: values.has('opt_out.enabled'), phrases: linesOf(values, 'opt_out.phrases'), key: someText(values, 'opt_out.key') },
    turn_detection: {
      mode: values.get('turn_detection.mode'), silence_ms: numberOf(values, 'turn_detection.silence_ms'),
      unfinished_silence_ms: numberOf(values, 'turn_detection.unfinished_silence_ms'), eager: values.has('turn_detection.eager'),
    },
    interruption: {
      min_duration_ms: numberOf(values, 'interruption.min_duration_ms'), min_words: numberOf(values, 'interruption.min_words'),
      sensitivity: values.get('interruption.sensitivity'), resume: values.has('interruption.resume'),
    },
  };
}

/** Its fields, `recording.consent` as one of them; lists are one field each. */
export function fieldsOf(definition) {
  const fields = new Map();
  const walk = (value, path) => {
    if (isObject(value)) for (const [name, inner] of Object.entries(value)) walk(inner, path ? `${path}.${name}` : name);
    else if (value !== null) fields.set(path, value);
  };
  walk(definition, '');
  return fields;
}

const CHOICES = {
  'brain.mode': text.mode, 'recording.channels': text.channels, 'recording.consent': text.consents, 'turn_detection.mode': text.turnModes,
  'interruption.sensitivity': text.sensitivities,
};

/** An entry of a list in one line, without what it does not say. */
function entryOf(entry) {
  if (!isObject(entry)) return String(entry);
  const says = ([, value]) => value !== null && value !== false && !(Array.isArray(value) && !value.length);
  const shown = (value) => (Array.isArray(value) ? value.join(', ') : isObject(value) ? JSON.stringify(value) : value === true ? text.yes : value);
  return Object.entries(entry).filter(says).map(([name, value]) => `${name}: ${shown(value)}`).join('; ');
}

/** A field's value in lines, for people. `called` names functions and voices by their ids. */
export function linesOfField(path, value, called = (id) => id) {
  if (value === null || value === undefined || value === '') return [];
  if (path === 'function_ids') return value.map(called);
  if (path === 'voice_id') return [called(value)];
  if (Array.isArray(value)) return value.flatMap((entry) => entryOf(entry).split('\n'));
  if (typeof value === 'boolean') return [value ? text.yes : text.no];
  if (CHOICES[path]) return [CHOICES[path](value)];
  return String(value).split('\n');
}

/** Names of `{{variables}}` that its words have, with `{{something|said instead}}` or without. */
export function variablesOf({ prompt, first_message: first, brain, recording }) {
  const said = [prompt, first, recording.consent_message ?? '', ...(brain.replies ?? []).map(({ say }) => say)].join('\n');
  const names = [...said.matchAll(/\{\{\s*([^{}|\s]{1,40})\s*(?:\|[^{}]*)?\}\}/g)].map(([, name]) => name);
  return [...new Set(names)].slice(0, 50);
}
