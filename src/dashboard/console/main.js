// The console: its frame, and which page stands in it.
import { ask, mayWrite, me, workspaceOf } from './api.js';
import { html, render, useEffect, useState } from './html.js';
import { connection, follow } from './live.js';
import { PasswordAgain } from './form.js';
import { Heading, Loaded, useAct, useLoad } from './parts.js';
import { go, place, to } from './place.js';
import { words } from './words.js';

/** A part of a file that is loaded when somebody first goes there. */
const at = (file, name) => () => import(`./pages/${file}.js`).then((module) => module[name]);

/** Each page without an id, with one, and for something new (`/new`). */
const PAGES = {
  overview: [at('overview', 'Overview')],
  campaigns: [at('campaigns', 'Campaigns'), at('campaign', 'Campaign'), at('new_campaign', 'NewCampaign')],
  calls: [at('calls', 'Calls'), at('call', 'Call')],
  agents: [at('agents', 'Agents'), at('agent', 'Agent'), at('agents', 'NewAgent')],
  rooms: [at('rooms', 'Rooms'), at('rooms', 'Room')],
  messages: [at('messages', 'Messages'), at('messages', 'Message')],
  imports: [at('imports', 'Imports'), at('imports', 'Import')],
  dnc: [at('dnc', 'DoNotCall')],
  consents: [at('consents', 'Consents'), at('consents', 'Consent')],
  voices: [at('voices', 'Voices'), at('voices', 'Voice'), at('new_voice', 'NewVoice')],
  functions: [at('functions', 'Functions'), at('functions', 'Func'), at('functions', 'NewFunction')],
  numbers: [at('numbers', 'Numbers'), at('numbers', 'Number')],
  trunks: [at('trunks', 'Trunks'), at('trunks', 'Trunk')],
  webhooks: [at('webhooks', 'Webhooks'), at('webhook', 'Webhook')],
  events: [at('events', 'Events'), at('events', 'Event')],
  credits: [at('credits', 'Credits')],
  compliance: [at('compliance', 'Compliance'), at('law', 'LawPages')],
  members: [at('members', 'Members')],
  account: [at('account', 'Account')],
  find: [at('find', 'FindPage')],
};
/** What belongs together in the menu. */
const MENU = {
  calling: ['overview', 'campaigns', 'calls', 'rooms', 'messages'],
  people: ['imports', 'dnc'],
  agents: ['agents', 'functions', 'voices'],
  lines: ['numbers', 'trunks'],
  developers: ['webhooks', 'events'],
  workspace: ['credits', 'compliance', 'consents', 'members', 'account'],
};
const REMEMBERED = 'callboard.workspace';

const Banner = () => place.value.env === 'test' && html`<p class="env-banner">${words.testBanner}</p>`;

function EnvironmentSwitch() {
  const { slug, env, page } = place.value;
  return html`
    <nav class="env-switch" aria-label=${words.environment}>
      ${['test', 'live'].map((name) => html`
        <a href="/t/${encodeURIComponent(slug)}/${name}/${page}" class=${name} aria-current=${name === env ? 'true' : undefined}>${words.env[name]}</a>`)}
    </nav>`;
}

function WorkspaceSwitch() {
  const { slug, env } = place.value;
  const { workspaces } = me.value;
  if (workspaces.length < 2) return html`<strong class="workspace-name">${workspaceOf(slug)?.name}</strong>`;
  const choose = ({ target }) => {
    const chosen = target.value;
    // Until the person is there, who may be asked first.
    target.value = slug;
    go(`/t/${encodeURIComponent(chosen)}/${env}/overview`);
  };
  return html`
    <label class="workspace">
      <span class="visually-hidden">${words.workspace}</span>
      <select value=${slug} onChange=${choose}>
        ${workspaces.map((workspace) => html`<option value=${workspace.slug} selected=${workspace.slug === slug}>${workspace.name}</option>`)}
      </select>
    </label>`;
}

/** Leads to what somebody looks for: a number, an id, a name. */
function Find() {
  const { page, query } = place.value;
  const find = (event) => {
    event.preventDefault();
    const typed = new FormData(event.target).get('q').trim();
    if (typed) go(to('find', '', { q: typed }));
  };
  return html`
    <form class="find" role="search" onSubmit=${find}>
      <input name="q" type="search" maxlength="200" placeholder=${words.find.label} aria-label=${words.find.label} defaultValue=${page === 'find' ? query.get('q') : ''} />
      <button class="button quiet small">${words.find.button}</button>
    </form>`;
}

const Connection = () => html`<p class="connection ${connection.value}" role="status">${words.connection[connection.value]}</p>`;

function SignOut() {
  const [run, busy, error] = useAct();
  const leave = async () => {
    await ask('POST', '/logout', {});
    location.assign('/login');
  };
  return html`
    ${error && html`<span class="error" role="alert">${error.message}</span>`}
    <button class="button quiet small" disabled=${busy} onClick=${() => run(leave)}>${words.signOut}</button>`;
}

/** On a phone it is folded away until it is asked for, and again once something was chosen. */
function Menu() {
  const { page, id } = place.value;
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(false), [page, id]);
  const link = (name) => html`<li key=${name}><a href=${to(name)} aria-current=${name === page ? 'page' : undefined}>${words.nav[name]}</a></li>`;
  return html`
    <div class="menu">
      <button class="button quiet small" aria-expanded=${isOpen} aria-controls="menu" onClick=${() => setIsOpen(!isOpen)}>${words.menu}</button>
      <nav id="menu" class=${isOpen ? 'open' : ''} aria-label=${words.nav.label}>
        ${Object.entries(MENU).map(([group, names]) => html`
          <section key=${group} aria-labelledby="menu-${group}"><h2 id="menu-${group}">${words.menuOf[group]}</h2>
            <ul>${names.map(link)}${group === 'developers' && html`<li><a href="/">${words.keys}</a></li><li><a href="/docs">${words.docs}</a></li>`}</ul>
          </section>`)}
      </nav>
    </div>`;
}

function Frame({ children }) {
  return html`
    <a class="skip" href="#content">${words.skip}</a>
    <header class="top">
      <div class="top-row">
        <a class="brand" href=${to('overview')}>${words.product}</a>
        <${WorkspaceSwitch} /><${EnvironmentSwitch} /><${Find} /><${Connection} />
        <div class="account"><a href=${to('account')}>${me.value.user.email}</a><${SignOut} /></div>
      </div>
      <${Banner} />
    </header>
    <div class="body">
      <${Menu} />
      <main id="content" class="page stack">
        ${!mayWrite() && html`<p class="notice">${words.viewOnly}</p>`}
        ${children}
      </main>
    </div>
    <${PasswordAgain} />`;
}

const Nothing = ({ title, text, children }) => html`<${Heading} title=${title} /><p>${text}</p>${children}`;

/** After an update of the server its files are elsewhere: then the whole has to be loaded anew. */
function Page({ load, id }) {
  const loaded = useLoad(() => load().catch(() => { throw new Error(words.outdated); }), [load]);
  return html`<${Loaded} of=${loaded}>${(Shown) => html`<${Shown} id=${id} />`}<//>`;
}

function Console() {
  const { slug, env, page, id } = place.value;
  const address = `${slug}/${env}/${page}/${id}`;
  useEffect(() => { document.documentElement.dataset.env = env; }, [env]);
  if (!workspaceOf(slug)) {
    return html`<main class="page stack"><${Nothing} title=${words.noWorkspace.title} text=${words.noWorkspace.text} /></main>`;
  }
  const [list, one, fresh] = Object.hasOwn(PAGES, page) ? PAGES[page] : [];
  const load = !id ? list : id === 'new' ? fresh : one;
  return html`
    <${Frame}>
      ${load
        ? html`<${Page} key=${address} load=${load} id=${id} />`
        : html`<${Nothing} title=${words.noPage.title} text=${words.noPage.text}><p><a href=${to('overview')}>${words.noPage.back}</a></p><//>`}
    <//>`;
}

/** `/t`: to the workspace that was looked at last. */
function choosePlace() {
  const { workspaces } = me.value;
  const { slug, env } = place.value;
  const isEnv = env === 'test' || env === 'live';
  if (slug && isEnv) return localStorage.setItem(REMEMBERED, slug);
  const remembered = workspaces.find((workspace) => workspace.slug === (slug || localStorage.getItem(REMEMBERED)));
  const chosen = remembered ?? workspaces[0];
  if (chosen) go(`/t/${encodeURIComponent(chosen.slug)}/test/overview`, { replace: true });
}

async function start() {
  const root = document.getElementById('console');
  try {
    me.value = await ask('GET', '/me');
    choosePlace();
    render(html`<${Console} />`, root);
    follow();
  } catch (error) {
    render(html`<main class="page"><p class="error block" role="alert">${error.message ?? words.unexpected}</p></main>`, root);
  }
}

start();
