import type { Store, StoreEvent } from './store.ts'

/** A store for one test. */
export interface StoreUnderTest {
  readonly store: Store
  /** Ends the store and opens it again on the same data; absent when it keeps none. */
  readonly reopen?: () => Promise<Store>
  readonly dispose: () => Promise<void>
}

/** How the store of one test is opened. */
export interface SuiteOptions {
  /** History must reach back for so many events at least, and must not for ten times as many. */
  readonly historyEvents: number
}

/** Opens a store that is closed after the test. */
export type OpenForTest = (options?: SuiteOptions) => Promise<StoreUnderTest>

/** A value of this text. */
export const bytes = (text: string): Buffer => Buffer.from(text)

/** `put a=1 (was 0)`: an event in words. */
export function inWords({ type, record, previous }: StoreEvent): string {
  const was = previous ? ` (was ${previous.value.toString()})` : ''
  return `${type} ${record.key}=${record.value.toString()}${was}`
}
