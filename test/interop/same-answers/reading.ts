import type { Answer } from './ask.ts'

type Fields = Record<string, unknown>

/** The object that a server answered with, to be sent again in a later step. */
export const bodyOf = (answer: Answer | undefined): Fields => (answer?.json ?? {}) as Fields

/** Its metadata. */
export const metadataOf = (answer: Answer | undefined): Fields =>
  (bodyOf(answer)['metadata'] ?? {}) as Fields

/** Its `metadata.resourceVersion`. */
export const versionOf = (answer: Answer | undefined): string =>
  String(metadataOf(answer)['resourceVersion'])

/** Where a list goes on, ready for a URL. */
export const continueOf = (answer: Answer | undefined): string =>
  encodeURIComponent(String(metadataOf(answer)['continue']))
