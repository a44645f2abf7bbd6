// Why a webhook is refused: the headers, the secret and the body as somebody has them, looked at part by part. Nothing leaves the page.
import { words } from '../words.js';

const text = words.webhooks.verify;
const PREFIX = 'whsec_';
/** 32 bytes in base64. */
const DIGITS = 44;
/** Seconds by which a receiver's clock and the timestamp may differ. */
const TOLERANCE = 300;
const utf8 = new TextEncoder();

const fine = (part, message = text.right) => ({ part, verdict: 'fine', message });
const warning = (part, message) => ({ part, verdict: 'warning', message });
const wrong = (part, message) => ({ part, verdict: 'wrong', message });

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => {
    all.set(part, at);
    return at + part.length;
  }, 0);
  return all;
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** The bytes, or null of what is not base64. */
function decoded(digits) {
  try {
    return Uint8Array.from(atob(digits), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

async function hmac(key, message) {
  // WebCrypto refuses an empty key, which signs as one zero byte does.
  const bytes = key.length ? key : new Uint8Array(1);
  const imported = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, message));
}

/** A signature by the key over `<timestamp>.<body>`, of which `id` is a part where Standard Webhooks sign. */
const signed = (key, timestamp, body, id = null) =>
  hmac(key, joined(utf8.encode(id === null ? `${timestamp}.` : `${id}.${timestamp}.`), body));

/** What is wrong with a secret as it was copied, and what it was meant to be. */
function secretFlaw(secret) {
  const bare = secret.trim().replace(/^["'`]|["'`]$/g, '').trim();
  const digits = bare.startsWith(PREFIX) ? bare.slice(PREFIX.length) : bare;
  const flaw = () => {
    if (!bare) return text.secret.empty;
    if (secret !== secret.trim()) return text.secret.blank;
    if (bare !== secret) return text.secret.quotes;
    if (!bare.startsWith(PREFIX)) return text.secret.prefix;
    if (digits.length === DIGITS - 1 && !digits.endsWith('=')) return text.secret.padding;
    if (digits.length !== DIGITS) return text.secret.length(digits.length, DIGITS);
    return decoded(digits)?.length === 32 ? null : text.secret.base64;
  };
  return { message: flaw(), meant: PREFIX + digits + (digits.length === DIGITS - 1 ? '=' : '') };
}

/** The check, and the numbers that may have been signed. */
function timestampOf(given, now) {
  if (!/^[0-9]{1,19}$/.test(given)) return { check: wrong('timestamp', text.timestamp.noNumber), times: [] };
  // Seconds have ten digits until the year 2286.
  const unit = [[12, 1], [15, 1_000], [18, 1_000_000], [20, 1_000_000_000]].find(([digits]) => given.length < digits)[1];
  const time = Number(given);
  if (unit > 1) return { check: wrong('timestamp', text.timestamp.unit[unit]), times: [given, String(Math.floor(time / unit))] };
  const age = now - time;
  const check = Math.abs(age) > TOLERANCE ? warning('timestamp', text.timestamp.old(age, TOLERANCE)) : fine('timestamp', text.timestamp.age(age));
  return { check, times: [given] };
}

/** What stands in the header: `values` to compare with, in hex, or `flaw`. Standard Webhooks list theirs with blanks between. */
function signatureOf(given) {
  if (!given) return { flaw: text.signature.empty, values: [] };
  const standard = given.split(/\s+/).filter((one) => one.startsWith('v1,')).map((one) => decoded(one.slice(3))).filter(Boolean);
  if (standard.length) return { isStandard: true, values: standard.map(hex) };
  const value = given.replace(/^sha256=/i, '');
  if (/^[0-9a-f]{64}$/i.test(value)) {
    const flaw = value === given ? text.signature.prefix : `sha256=${value.toLowerCase()}` === given ? null : text.signature.upper;
    return { flaw, values: [value.toLowerCase()] };
  }
  const bytes = decoded(value);
  if (bytes?.length === 32) return { flaw: text.signature.base64, values: [hex(bytes)] };
  return { flaw: /^[0-9a-f]+$/i.test(value) ? text.signature.length(value.length) : text.signature.noForm, values: [] };
}

/** Bodies that this one may have been, and what happened then. A text field has no CRLF: it was lost when it was pasted. */
function* otherBodies(body) {
  if (body.endsWith('\n')) yield [body.replace(/\n+$/, ''), text.body.newline];
  if (body !== body.trim()) yield [body.trim(), text.body.blank];
  yield [`${body}\n`, text.body.lostNewline];
  yield [body.replaceAll('\n', '\r\n'), text.body.crlf];
  yield [`${body}\r\n`, text.body.lostNewline];
  try {
    yield [JSON.stringify(JSON.parse(body)), text.body.serialized];
  } catch {
    // It is not JSON: nothing else can be undone.
  }
}

const parsed = (body) => {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
};

/** The key of X-Webhook-Signature is the whole secret; Standard Webhooks take the bytes that it stands for. */
const wholeKey = (secret) => utf8.encode(secret);
const decodedKey = (secret) => decoded(secret.slice(PREFIX.length)) ?? new Uint8Array();

/** Each usual mishap is undone; the one after which the signature matches is named. `matches(key, body, id)` tries one. */
async function causeOf({ body, secret, id, isStandard }, matches) {
  if (isStandard && !id) return wrong('id', text.id.missing);
  const [key, raw, ownId] = [isStandard ? decodedKey(secret) : wholeKey(secret), utf8.encode(body), isStandard ? id : null];
  for (const [other, what] of otherBodies(body)) {
    if (other !== body && await matches(key, utf8.encode(other), ownId)) return wrong('body', what);
  }
  if (!body) return wrong('body', text.body.empty);
  const content = parsed(body);
  if (isStandard) return content?.id && await matches(key, raw, content.id) ? wrong('id', text.id.wrong) : null;
  if (await matches(wholeKey(secret.slice(PREFIX.length)), raw, null)) return wrong('secret', text.secret.cutByYou);
  if (await matches(decodedKey(secret), raw, null)) return wrong('secret', text.secret.decodedByYou);
  return await matches(wholeKey(`${secret}\n`), raw, null) ? wrong('secret', text.secret.newlineByYou) : null;
}

/** Where nothing explains it: what is most likely. */
function guess(content, { isForeign, isOther, secret }) {
  if (isForeign) return wrong('secret', text.secret.foreign(hintOf(secret)));
  if (isOther) return wrong('body', text.body.otherEvent);
  if (!content) return wrong('body', text.body.noJson);
  // Callboard writes the id first; who sorts the keys loses the original for ever.
  return wrong('body', Object.keys(content)[0] === 'id' ? text.body.unknown : text.body.sorted);
}

/** The last characters of a secret, by which the API names it. */
const hintOf = (secret) => secret.slice(-4);

function secretCheck(flaw, secret, hints) {
  if (flaw) return wrong('secret', flaw);
  if (!hints.length) return fine('secret', text.secret.form);
  return hints.includes(hintOf(secret)) ? fine('secret', text.secret.known) : warning('secret', text.secret.foreign(hintOf(secret)));
}

/**
 * Every part in order: `{ part, verdict, message }`, the verdict `fine`, `warning` or `wrong`. `hints`: the ends of the secrets that
 * the endpoints have now; `now`: Unix seconds.
 */
export async function diagnose({ body, id, timestamp, signature, secret: given, hints, now }) {
  // With the secret that was meant, so that one fault does not hide the next.
  const { message: flaw, meant: secret } = secretFlaw(given);
  const { check, times } = timestampOf(timestamp, now);
  const { values, isStandard = false, flaw: form } = signatureOf(signature);
  const checks = [secretCheck(flaw, secret, hints), check];
  if (!times.length || !values.length) return [...checks, form ? wrong('signature', form) : warning('signature', text.signature.unchecked)];
  const matches = async (key, bytes, ownId) => {
    for (const time of times) {
      if (values.includes(hex(await signed(key, time, bytes, ownId)))) return true;
    }
    return false;
  };
  const [raw, content] = [utf8.encode(body), parsed(body)];
  const isOther = Boolean(id && content?.id && content.id !== id);
  if (await matches(isStandard ? decodedKey(secret) : wholeKey(secret), raw, isStandard ? id : null)) {
    checks.push(form ? wrong('signature', text.signature.butRight(form)) : fine('signature'), fine('body', text.body.bytes(raw.length)));
    return isOther ? [...checks, warning('id', text.id.differs)] : checks;
  }
  checks.push(wrong('signature', form ?? text.signature.mismatch));
  const isForeign = hints.length > 0 && !hints.includes(hintOf(secret));
  const cause = await causeOf({ body, secret, id, isStandard }, matches) ?? (flaw ? null : guess(content, { isForeign, isOther, secret }));
  return cause ? [...checks.filter(({ part }) => part !== cause.part), cause] : checks;
}
