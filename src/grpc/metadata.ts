import type { HeaderField } from './http2/index.ts'

/** The content type of every request and answer. */
export const grpcContentType = 'application/grpc'

/** Every value by lower-case name. */
export type Metadata = Readonly<Record<string, readonly string[]>>

/** Header fields by name, every value apart, without HTTP/2's own. */
export function metadataOf(fields: readonly HeaderField[]): Metadata {
  const metadata: Record<string, string[]> = Object.create(null)
  for (const [name, value] of fields) {
    if (name.startsWith(':')) continue
    const values = metadata[name]
    if (values) values.push(value)
    else metadata[name] = [value]
  }
  return metadata
}

/** The first value of a header field. */
export const headerOf = (fields: readonly HeaderField[], wanted: string): string | undefined =>
  fields.find(([name]) => name === wanted)?.[1]

/** Metadata as header fields, names in lower case as HTTP/2 wants them. */
export const fieldsOf = (metadata: Readonly<Record<string, string>>): HeaderField[] =>
  Object.entries(metadata).map(([name, value]) => [name.toLowerCase(), value])
