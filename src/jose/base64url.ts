/** Decodes base64url; undefined unless the text is the one canonical spelling of its bytes. */
export function decodeBase64url(text: string): Buffer | undefined {
  // Node.js skips what it does not know and drops stray bits, so one signature would have many spellings.
  if (!/^[\w-]*$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
