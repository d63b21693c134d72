import { test } from 'vitest'

/** Registers a test for fixtures with an ability only: to be without it is no test left out. */
export const testOf = (ability: unknown): ((title: string, run: () => Promise<void>) => void) =>
  ability ? test : () => {}
