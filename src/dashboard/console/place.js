// Where the person is: workspace, environment and page. The address bar says it, so every page can be bookmarked and sent to somebody.
import { computed, signal } from './html.js';

const path = signal(location.pathname + location.search);

/** `/t/{slug}/{env}/{page}/{id}?…`. */
export const place = computed(() => {
  const url = new URL(path.value, location.origin);
  const [, , slug = '', env = '', page = '', id = ''] = url.pathname.split('/').map(decodeURIComponent);
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

export function go(address, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  path.value = location.pathname + location.search;
}

addEventListener('popstate', () => { path.value = location.pathname + location.search; });
document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="/t/"]');
  const isPlain = !event.defaultPrevented && event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.target) return;
  event.preventDefault();
  go(link.getAttribute('href'));
  scrollTo(0, 0);
});
