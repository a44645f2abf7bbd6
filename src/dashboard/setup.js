import { api, byId, countryChoices, onSubmit, tokenOfLink, zoneChoices } from './common.js';

let token = null;

function takeToken() {
  const found = tokenOfLink();
  token = found ?? token;
  byId('setup-card').hidden = !token;
  byId('needs-link').hidden = Boolean(token);
  if (found) byId('name').focus();
}

const slugFrom = (name) => name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  .replace(/[^a-z0-9]+/g, '-').replace(/^-/, '').slice(0, 40).replace(/-$/, '');

let suggestion = '';
byId('name').addEventListener('input', () => {
  const slug = byId('slug');
  if (slug.value && slug.value !== suggestion) return; // written by hand: leave it
  suggestion = slugFrom(byId('name').value);
  slug.value = suggestion;
});

// --- Country and time zone ---

const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
let zoneOf = new Map();
let zoneByHand = false;

/** Fills both lists. The browser's own zone says best where somebody sits, and mostly in which country. */
async function offerPlaces() {
  const countries = (await api('GET', '/countries')).data;
  zoneOf = new Map(countries.map(({ country, timezone }) => [country, timezone]));
  const options = (choices) => choices.map(([value, text]) => new Option(text, value));
  byId('country').replaceChildren(new Option('Choose…', ''), ...options(countryChoices(countries)));
  byId('timezone').replaceChildren(...options(zoneChoices(countries, here)));
  const spoken = navigator.languages.map((language) => new Intl.Locale(language).region).find((region) => zoneOf.has(region));
  const main = countries.find(({ timezone }) => timezone === here);
  byId('country').value = (zoneOf.get(spoken) === here ? spoken : main?.country ?? spoken) ?? '';
  byId('timezone').value = here || zoneOf.get(byId('country').value) || 'UTC';
}

async function loadPlaces() {
  let why = '';
  try {
    await offerPlaces();
  } catch (error) {
    why = `Countries and time zones could not be loaded: ${error.message}`;
  }
  byId('why').textContent = why;
  byId('again').hidden = !why;
}

byId('again').addEventListener('click', loadPlaces);
byId('country').addEventListener('change', () => {
  const zone = zoneOf.get(byId('country').value);
  if (zone && !zoneByHand) byId('timezone').value = zone;
});
byId('timezone').addEventListener('change', () => { zoneByHand = true; });

onSubmit(byId('setup'), async (form) => {
  await api('POST', '/signup', { token, ...Object.fromEntries(form) });
  location.replace('/');
});

addEventListener('hashchange', takeToken);
takeToken();
loadPlaces();
