// What is set of a SIP trunk: each field once, for the form and for who only looks.
import { Area, Check, Field, Select } from '../form.js';
import { count, decimal } from '../format.js';
import { html } from '../html.js';
import { Facts } from '../parts.js';
import { words } from '../words.js';
import { written } from './lines.js';

const text = words.trunks;
const CODECS = ['pcmu', 'pcma', 'g722', 'opus'];
const HOST = 261;

/** `is`: how it is asked for; a text, if it says nothing. `usual`: the default of the API. */
const FIELDS = {
  name: { required: true, maxlength: 200 },
  host: { required: true, maxlength: HOST },
  transport: { is: 'choice', of: ['udp', 'tcp', 'tls'] },
  outbound_proxy: { maxlength: HOST },
  username: { maxlength: 255 },
  password: { is: 'secret', set: 'password_set', maxlength: 255 },
  auth_username: { maxlength: 255 },
  from_domain: { maxlength: 253 },
  'register.enabled': { is: 'yes' },
  'register.expires_seconds': { is: 'number', min: 60, max: 3_600, usual: 300 },
  'register.contact_user': { maxlength: 64 },
  inbound_addresses: { is: 'networks' },
  'inbound_auth.username': { maxlength: 255 },
  'inbound_auth.password': { is: 'secret', set: 'inbound_password_set', isNeeded: true, maxlength: 255 },
  codecs: { is: 'codecs', usual: ['pcmu', 'pcma'] },
  dtmf: { is: 'choice', of: ['auto', 'rfc4733', 'inband', 'info'] },
  srtp: { is: 'choice', of: ['off', 'required'] },
  media_addresses: { is: 'networks' },
  max_calls_per_second: { is: 'number', min: 0.1, max: 10_000, step: 'any', usual: 1 },
  max_concurrency: { is: 'number', min: 1, max: 100_000, usual: null },
  number_format: { is: 'choice', of: ['e164_plus', 'e164', 'national'] },
  caller_id: { is: 'choice', of: ['from', 'pai'] },
  transfer: { is: 'choice', of: ['bridge', 'refer'] },
  options_interval_seconds: { is: 'number', min: 0, max: 3_600, usual: 30 },
  session_expires_seconds: { is: 'number', min: 90, max: 7_200, usual: 1_800 },
};

const GROUPS = {
  peer: ['name', 'host', 'transport', 'outbound_proxy'],
  login: ['username', 'password', 'auth_username', 'from_domain'],
  registration: ['register.enabled', 'register.expires_seconds', 'register.contact_user'],
  incoming: ['inbound_addresses', 'inbound_auth.username', 'inbound_auth.password'],
  sound: ['codecs', 'dtmf', 'srtp', 'media_addresses'],
  limits: ['max_calls_per_second', 'max_concurrency'],
  outgoing: ['number_format', 'caller_id', 'transfer'],
  watch: ['options_interval_seconds', 'session_expires_seconds'],
};
/** What nobody can do without; the rest is opened when it is wanted. */
const FIRST = ['peer', 'login'];

/** `register.enabled` of a trunk. */
const valueOf = (trunk, name) => name.split('.').reduce((of, part) => of?.[part], trunk);
const label = (name) => text.fields[name];
const option = (name, value) => text.options[name]?.[value] ?? value;

/** The codecs in their order, each by a choice of its own. The API's word on all of them is said at the first. */
const Codecs = ({ value }) => CODECS.map((_, n) => html`
  <${Select} key=${n} name=${n === 0 ? 'codecs' : `codecs[${n}]`} label=${text.codec(n)} hint=${n === 0 ? text.hints.codecs : undefined} defaultValue=${value[n] ?? ''}
    options=${[...(n === 0 ? [] : [['', text.noCodec]]), ...CODECS.map((codec) => [codec, option('codecs', codec)])]} />`);

/** Nobody sees a password again: it stays as it is unless another is written, or it is to be removed. */
const Password = ({ name, isSet, isNeeded, ...rest }) => html`
  <${Field} name=${name} type="password" label=${label(name)} hint=${isSet ? text.kept : text.hints[name]} autocomplete="new-password" ...${rest} />
  ${isSet && !isNeeded && html`<${Check} name="${name}.remove" label=${text.removePassword} />`}`;

function Input({ name, trunk }) {
  const { is, of, usual, set, ...rest } = FIELDS[name];
  const given = valueOf(trunk, name);
  const value = given === undefined ? usual : given;
  const known = { name, label: label(name), hint: text.hints[name] };
  if (is === 'secret') return html`<${Password} name=${name} isSet=${trunk[set]} ...${rest} />`;
  if (is === 'codecs') return html`<${Codecs} value=${value} />`;
  if (is === 'yes') return html`<${Check} ...${known} defaultChecked=${Boolean(value)} />`;
  if (is === 'choice') return html`<${Select} ...${known} options=${of.map((one) => [one, option(name, one)])} defaultValue=${value ?? of[0]} />`;
  if (is === 'networks') return html`<${Area} ...${known} rows="3" maxlength="4000" spellcheck="false" defaultValue=${(value ?? []).join('\n')} />`;
  if (is === 'number') return html`<${Field} ...${known} type="number" step="1" required=${usual !== null} defaultValue=${value ?? ''} ...${rest} />`;
  return html`<${Field} ...${known} autocomplete="off" spellcheck="false" defaultValue=${value ?? ''} ...${rest} />`;
}

export const Inputs = ({ trunk }) => Object.entries(GROUPS).map(([group, names]) => html`
  <details key=${group} class="group panel" open=${FIRST.includes(group)}>
    <summary><h2>${text.groups[group]}</h2></summary>
    <div class="fields">${names.map((name) => html`<${Input} key=${name} name=${name} trunk=${trunk} />`)}</div>
  </details>`);

/** What a field is set to; `undefined`: it stays as it is. */
function readOf(values, name) {
  const { is } = FIELDS[name];
  const value = written(values, name);
  if (is === 'yes') return values.has(name);
  if (is === 'number') return value && Number(value);
  if (is === 'networks') return (value ?? '').split(/[\s,;]+/).filter(Boolean);
  if (is === 'codecs') return CODECS.map((_, n) => written(values, n === 0 ? name : `${name}[${n}]`)).filter(Boolean);
  // Blanks may belong to it.
  if (is === 'secret') return values.get(name) || (values.has(`${name}.remove`) ? null : undefined);
  return value;
}

/** What was written, as the API takes it. */
export function settingsOf(values) {
  const body = {};
  for (const name of Object.keys(FIELDS)) {
    const [first, second] = name.split('.');
    const value = readOf(values, name);
    if (second) body[first] = { ...body[first], [second]: value };
    else body[first] = value;
  }
  // Whom the peer says it is, if it says so at all.
  const { username, password } = body.inbound_auth;
  if (!username && !password) body.inbound_auth = null;
  return body;
}

/** What a trunk is set to, to tell what is new; of a password nobody knows more than that there is one. */
export const knownOf = (trunk) => ({
  ...trunk, password: trunk.password_set || null,
  inbound_auth: trunk.inbound_auth && { ...trunk.inbound_auth, password: trunk.inbound_password_set || null },
});

function shown(trunk, name) {
  const { is, set } = FIELDS[name];
  const value = valueOf(trunk, name);
  if (is === 'secret') return trunk[set] ? text.set : null;
  if (is === 'yes') return text.yesOrNo(value);
  if (is === 'networks') return value.join(', ');
  if (is === 'codecs') return value.map((codec) => option(name, codec)).join(', ');
  if (is === 'choice') return option(name, value);
  if (is === 'number') return value === null ? text.unlimited : (Number.isInteger(value) ? count : decimal)(value);
  return value;
}

const Group = ({ of }) => of.some(([, value]) => value) ? html`<${Facts} of=${of} />` : html`<p class="muted">${text.nothing}</p>`;

/** All of it, to be read. */
export const Settings = ({ trunk }) => html`
  <section class="stack tight" aria-labelledby="settings">
    <h2 id="settings">${text.settings}</h2>
    <div class="setting-groups">
      ${Object.entries(GROUPS).map(([group, names]) => html`
        <section key=${group}><h3>${text.groups[group]}</h3><${Group} of=${names.map((name) => [label(name), shown(trunk, name)])} /></section>`)}
    </div>
  </section>`;

/** What the API says of fields, by the names that the form has for them. */
export const inWords = (advice) => advice.replace(/`([a-z_.]+)`/g, (_, name) => `“${label(name) ?? name}”`);
