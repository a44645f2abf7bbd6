// The console: its frame, and which page stands in it.
import { ask, call, mayWrite, me, workspaceOf } from './api.js';
import { html, render, useEffect, useState } from './html.js';
import { connection, follow } from './live.js';
import { Heading, useAct } from './parts.js';
import { go, place, to } from './place.js';
import { words } from './words.js';
import { Call } from './pages/call.js';
import { Calls } from './pages/calls.js';
import { Campaign } from './pages/campaign.js';
import { Campaigns } from './pages/campaigns.js';
import { Overview } from './pages/overview.js';

/** Without an id, and with one. */
const PAGES = {
  overview: [Overview, null],
  campaigns: [Campaigns, Campaign],
  calls: [Calls, Call],
};
const REMEMBERED = 'callboard.workspace';
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

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
  return html`
    <label class="workspace">
      <span class="visually-hidden">${words.workspace}</span>
      <select value=${slug} onChange=${({ target }) => go(`/t/${encodeURIComponent(target.value)}/${env}/overview`)}>
        ${workspaces.map((workspace) => html`<option value=${workspace.slug} selected=${workspace.slug === slug}>${workspace.name}</option>`)}
      </select>
    </label>`;
}

/** Leads to what has this id. */
function Find() {
  const [message, setMessage] = useState('');
  const find = async (event) => {
    event.preventDefault();
    const id = new FormData(event.target).get('id').trim();
    setMessage('');
    if (!ID.test(id)) return setMessage(words.find.none);
    for (const [kind, page] of [['sessions', 'calls'], ['campaigns', 'campaigns']]) {
      try {
        await call('GET', `/${kind}/${id}`);
        event.target.reset();
        return go(to(page, id));
      } catch (error) {
        if (error.status !== 404) return setMessage(error.message);
      }
    }
    return setMessage(words.find.none);
  };
  return html`
    <form class="find" role="search" onSubmit=${find}>
      <input name="id" type="search" maxlength="100" placeholder=${words.find.label} aria-label=${words.find.label} aria-describedby="find-message" onInput=${() => setMessage('')} />
      <button class="button quiet small">${words.find.button}</button>
      <p id="find-message" class="error" role="alert">${message}</p>
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

function Frame({ children }) {
  const { page } = place.value;
  return html`
    <a class="skip" href="#content">${words.skip}</a>
    <header class="top">
      <div class="top-row">
        <a class="brand" href=${to('overview')}>${words.product}</a>
        <nav aria-label=${words.nav.label}>
          ${Object.keys(PAGES).map((name) => html`<a href=${to(name)} aria-current=${name === page ? 'page' : undefined}>${words.nav[name]}</a>`)}
          <a href="/">${words.keys}</a>
        </nav>
        <div class="account">
          <span>${me.value.user.email}</span>
          <${SignOut} />
        </div>
      </div>
      <div class="top-row second">
        <${WorkspaceSwitch} /><${EnvironmentSwitch} /><${Find} /><${Connection} />
      </div>
      <${Banner} />
    </header>
    <main id="content" class="page stack">
      ${!mayWrite() && html`<p class="notice">${words.viewOnly}</p>`}
      ${children}
    </main>`;
}

const Nothing = ({ title, text, children }) => html`<${Heading} title=${title} /><p>${text}</p>${children}`;

function Console() {
  const { slug, env, page, id } = place.value;
  const address = `${slug}/${env}/${page}/${id}`;
  useEffect(() => { document.documentElement.dataset.env = env; }, [env]);
  if (!workspaceOf(slug)) {
    return html`<main class="page stack"><${Nothing} title=${words.noWorkspace.title} text=${words.noWorkspace.text} /></main>`;
  }
  const [List, One] = Object.hasOwn(PAGES, page) ? PAGES[page] : [];
  const Page = id ? One : List;
  return html`
    <${Frame}>
      ${Page
        ? html`<${Page} key=${address} id=${id} />`
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
