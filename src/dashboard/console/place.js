// Where the person is: workspace, environment and page. The address bar says it, so every page can be bookmarked and sent to somebody.
import { computed, signal } from './html.js';

const path = signal(location.pathname + location.search);
/** Has the person gone from page to page? Then the new one's heading is told to who does not see it. */
export const wentOn = { value: false };

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody has typed a % of his own
  }
}

/** `/t/{slug}/{env}/{page}/{id}?…`. */
export const place = computed(() => {
  const url = new URL(path.value, location.origin);
  const [, , slug = '', env = '', page = '', id = ''] = url.pathname.split('/').map(decoded);
  return { slug, env, page: page || 'overview', id, query: url.searchParams };
});

/** The address of a page in this workspace and environment; `query` leaves out what is empty. */
export function to(page, id = '', query = {}) {
  const { slug, env } = place.value;
  const known = Object.entries(query).filter(([, value]) => value);
  const search = known.length ? `?${new URLSearchParams(known)}` : '';
  const parts = ['', 't', slug, env, page, id].filter((part, n) => n === 0 || part).map(encodeURIComponent);
  return parts.join('/') + search;
}

/** Asks the person before another page takes this one's place: `guard(leave)` calls `leave` if they go. */
let guard = null;
let isViewGuarded = false;

/** Sets who asks, `isView`: also before another view of the same page; answers what ends that. */
export function guardPage(asks, isView = false) {
  [guard, isViewGuarded] = [asks, isView];
  return () => { if (guard === asks) guard = null; };
}

function isGuarded(address) {
  const pageOf = ({ pathname, search }) => pathname + (isViewGuarded ? search : '');
  return guard !== null && pageOf(new URL(address, location.origin)) !== pageOf(new URL(path.value, location.origin));
}

/** `isSure`: there is nothing left to lose. */
export function go(address, { replace = false, isSure = false } = {}) {
  if (!isSure && isGuarded(address)) return guard(() => go(address, { replace, isSure: true }));
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  wentOn.value ||= !replace;
  path.value = location.pathname + location.search;
  return undefined;
}

let isGoingBack = false;
addEventListener('popstate', () => {
  if (!isGoingBack && isGuarded(location.href)) {
    // The browser has gone already.
    history.pushState(null, '', path.value);
    guard(() => {
      isGoingBack = true;
      history.back();
    });
    return;
  }
  isGoingBack = false;
  wentOn.value = true;
  path.value = location.pathname + location.search;
});
document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="/t/"]');
  const isPlain = !event.defaultPrevented && event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.target) return;
  event.preventDefault();
  const address = link.getAttribute('href');
  const follow = () => {
    go(address, { isSure: true });
    scrollTo(0, 0);
  };
  if (isGuarded(address)) guard(follow);
  else follow();
});
