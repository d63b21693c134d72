import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/*.test.ts', 'test/integration/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    globalSetup: ['test/ensure-built.mjs'],
    pool: 'forks',
    maxWorkers: 2,
  },
})
