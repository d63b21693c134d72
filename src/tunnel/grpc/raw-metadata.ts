/** Header fields by lower-case name, every value apart, without HTTP/2's own. */
export function metadataOf(
  rawHeaders: readonly string[],
): Readonly<Record<string, readonly string[]>> {
  const metadata: Record<string, string[]> = Object.create(null)
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? ''
    if (name.startsWith(':')) continue
    const values = metadata[name]
    if (values) values.push(rawHeaders[index + 1] ?? '')
    else metadata[name] = [rawHeaders[index + 1] ?? '']
  }
  return metadata
}
