/** Writes one value as YAML. */
export type YamlWriter = (value: unknown) => string

/** Loads the YAML library, which few answers need. */
export async function loadYamlWriter(): Promise<YamlWriter> {
  const { stringify } = await import('yaml')
  // Texts of several lines in quotes: as blocks, the library loses spaces at the start of some of them.
  return (value) =>
    stringify(value, { aliasDuplicateObjects: false, blockQuote: false, lineWidth: 0 })
}
