import { createHash } from 'node:crypto'

/** What a document is called as long as its bytes stay the same. */
export const entityTagOf = (body: Uint8Array): string =>
  `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`

/** Whether `If-None-Match` says that the client has this document; a proxy that packs documents weakens their names. */
export const isKnownByClient = (header: string | undefined, tag: string): boolean =>
  header !== undefined &&
  header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag)
