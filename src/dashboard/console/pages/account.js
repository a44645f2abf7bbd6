import { ask, me, query } from '../api.js';
import { Field, FormDialog } from '../form.js';
import { html, useState } from '../html.js';
import { Badge, Confirm, Facts, Heading, Loaded, More, Table, Time, usePages } from '../parts.js';
import { words } from '../words.js';

const text = words.account;

/** The first that a browser names is what it is: most of them claim to be others too. */
const BROWSERS = [
  [/\bEdg/, 'Edge'], [/\bOPR\//, 'Opera'], [/\b(Firefox|FxiOS)\//, 'Firefox'], [/\b(Chrome|CriOS)\//, 'Chrome'], [/\bSafari\//, 'Safari'],
];
const SYSTEMS = [
  [/\b(iPhone|iPad|iPod)\b/, 'iOS'], [/\bAndroid\b/, 'Android'], [/\bWindows\b/, 'Windows'], [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'], [/\bLinux\b/, 'Linux'],
];
const firstIn = (agent, names) => names.find(([pattern]) => pattern.test(agent))?.[1];

/** What is shown of a name that nobody knows. */
const LONGEST = 100;

function browserOf(agent) {
  if (!agent) return text.sessions.unknown;
  const [browser, system] = [firstIn(agent, BROWSERS), firstIn(agent, SYSTEMS)];
  return browser && system ? text.sessions.on(browser, system) : browser ?? agent.slice(0, LONGEST);
}

function ChangePassword({ close, done }) {
  const act = async (values) => {
    await ask('POST', '/password', { current_password: values.get('current_password'), new_password: values.get('new_password') });
    await done(text.password.done);
  };
  return html`
    <${FormDialog} title=${text.password.button} act=${act} submit=${text.password.button} close=${close}>
      <input class="visually-hidden" type="text" autocomplete="username" value=${me.value.user.email} readonly tabindex="-1" aria-hidden="true" />
      <${Field} name="current_password" type="password" label=${text.password.current} autocomplete="current-password" required
        data-message=${text.password.noCurrent} autofocus />
      <${Field} name="new_password" type="password" label=${text.password.new} hint=${text.password.hint}
        autocomplete="new-password" minlength="12" required data-message=${text.password.tooShort} />
    <//>`;
}

function Sessions({ pages, done }) {
  const [asked, setAsked] = useState(null);
  const end = async ({ id }) => {
    await ask('DELETE', `/sessions/${id}`);
    await done(text.sessions.ended);
  };
  const row = (session) => {
    const { id, user_agent: agent, is_this_one: isThisOne } = session;
    return {
      key: id,
      cells: [
        html`<span class="wrap" title=${agent}>${browserOf(agent)}</span>${isThisOne && html` <${Badge} of="active">${text.sessions.thisOne}<//>`}`,
        html`<${Time} of=${session.created_at} />`, html`<${Time} of=${session.last_seen_at} />`, html`<${Time} of=${session.expires_at} />`,
        isThisOne ? words.none : html`
          <button class="button quiet small" aria-label="${text.sessions.end}: ${browserOf(agent)}"
            onClick=${() => setAsked(session)}>${text.sessions.end}</button>`,
      ],
    };
  };
  const { confirm } = text.sessions;
  return html`
    <${Loaded} of=${pages}>${(sessions) => html`
      <${Table} label=${text.sessions.title} columns=${Object.values(text.sessions.columns)} rows=${sessions.map(row)} /><${More} next=${pages.next} />`}<//>
    ${asked && html`
      <${Confirm} asks=${{ ...confirm, text: confirm.text(browserOf(asked.user_agent)) }} act=${() => end(asked)} close=${() => setAsked(null)} />`}`;
}

async function leaveEverywhere() {
  await ask('POST', '/logout-everywhere', {});
  location.assign('/login');
}

export function Account() {
  const sessions = usePages((cursor) => ask('GET', `/sessions${query({ cursor })}`), []);
  const [open, setOpen] = useState('');
  const [said, setSaid] = useState('');
  const close = () => setOpen('');
  const done = async (what) => {
    setSaid(what);
    await sessions.reload();
  };
  return html`
    <${Heading} title=${text.title} />
    <div class="stack tight">
      <${Facts} of=${[[text.email, me.value.user.email]]} />
      <div role="status">${said && html`<p class="notice">${said}</p>`}</div>
    </div>
    <section class="stack tight" aria-labelledby="password"><h2 id="password">${text.password.title}</h2>
      <p class="muted">${text.password.text}</p>
      <div class="actions left"><button class="button quiet" onClick=${() => setOpen('password')}>${text.password.button}</button></div>
    </section>
    <section class="stack tight" aria-labelledby="sessions"><h2 id="sessions">${text.sessions.title}</h2>
      <${Sessions} pages=${sessions} done=${done} />
      <div class="actions left"><button class="button quiet danger" onClick=${() => setOpen('everywhere')}>${text.everywhere.button}</button></div>
    </section>
    ${open === 'password' && html`<${ChangePassword} close=${close} done=${done} />`}
    ${open === 'everywhere' && html`<${Confirm} asks=${text.everywhere.confirm} act=${leaveEverywhere} close=${close} />`}`;
}
