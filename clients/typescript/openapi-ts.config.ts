import { defineConfig } from '@hey-api/openapi-ts';

// `generate` says which document.
export default defineConfig({
  input: process.env.DOCUMENT ?? '',
  output: { path: 'src/generated', module: { extension: '.js' } },
  // What the console calls is not for keys. Orphans are kept: only webhooks refer to the shapes of events.
  parser: { filters: { tags: { exclude: ['dashboard'] }, orphans: true } },
  plugins: [
    '@hey-api/typescript',
    { name: '@hey-api/client-fetch', throwOnError: true },
    {
      name: '@hey-api/sdk',
      operations: { strategy: 'single', containerName: 'Operations', methods: 'instance' },
      responseStyle: 'data',
    },
  ],
});
