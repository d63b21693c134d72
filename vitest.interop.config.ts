import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/interop/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    globalSetup: ['test/ensure-built.mjs'],
    pool: 'forks',
    maxWorkers: 2,
  },
})
