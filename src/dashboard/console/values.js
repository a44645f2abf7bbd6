// What a form holds, as the API takes it: an empty field is null, which puts a default back.
import { ApiError } from '../common.js';
import { words } from './words.js';

const text = words.agents.json;

export const textOf = (values, name) => (values.get(name) ?? '').replaceAll('\r\n', '\n').trim();
export const someText = (values, name) => textOf(values, name) || null;
export const linesOf = (values, name) => textOf(values, name).split('\n').map((line) => line.trim()).filter(Boolean);

export function numberOf(values, name) {
  const given = textOf(values, name);
  return given === '' ? null : Number(given);
}

/** The rows of a list, whose fields are `name[0].field`; each row has the field `first`. */
export function rowsOf(values, name, first, read) {
  const rows = [];
  for (let at = `${name}[0]`; values.has(`${at}.${first}`); at = `${name}[${rows.length}]`) rows.push(read(at));
  return rows;
}

/** JSON that somebody has typed; `otherwise`, if nothing was. */
export function jsonOf(values, name, otherwise) {
  const given = textOf(values, name);
  if (!given) return otherwise;
  try {
    return JSON.parse(given);
  } catch (error) {
    throw new ApiError(text.invalid(error.message), { param: name });
  }
}

export const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

export function objectOf(values, name) {
  const value = jsonOf(values, name, {});
  if (!isObject(value)) throw new ApiError(text.noObject, { param: name });
  return value;
}

/** Are they the same JSON? What is null and what is not there are one. */
export function same(one, other) {
  if (one === other || (one ?? null) === (other ?? null)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other || Array.isArray(one) !== Array.isArray(other)) return false;
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].every((name) => same(one[name], other[name]));
}

/** The same text for the same JSON, in whatever order its keys are. */
export const canonical = (value) => JSON.stringify(value, (_, inner) => (isObject(inner) ? Object.fromEntries(Object.entries(inner).sort()) : inner));

/** The JSON merge patch that makes `after` of `before`: only what differs. An object of another `mode` is replaced as a whole. */
export function patchOf(before, after) {
  const patch = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name] ?? null, after[name] ?? null];
    if (!same(was, is)) patch[name] = isObject(was) && isObject(is) && was.mode === is.mode ? patchOf(was, is) : is;
  }
  return patch;
}

/** The same of what `after` names: a field that a form does not ask for, or that is undefined, stays. Null: nothing has changed. */
export function changesOf(before, after) {
  const patch = {};
  for (const [name, is] of Object.entries(after)) {
    const was = before[name] ?? null;
    if (isObject(was) && isObject(is)) {
      const part = changesOf(was, is);
      if (part) patch[name] = part;
    } else if (is !== undefined && !same(was, is)) patch[name] = is;
  }
  return Object.keys(patch).length ? patch : null;
}

/** What a JSON merge patch makes of `before`. */
export function merged(before, patch) {
  if (!isObject(patch)) return patch;
  const after = isObject(before) ? { ...before } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete after[name];
    else after[name] = merged(after[name], value);
  }
  return after;
}

/** Without what is null: where something is created, a field that is left out has its default. Entries of lists stay as they are. */
export function withoutNulls(value) {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== null).map(([name, inner]) => [name, withoutNulls(inner)]));
}
