import { CommandFailed, readGivenFile } from '../core/index.ts'

/** The option that names a private CA. */
export const certificateAuthorityOption = {
  'certificate-authority': {
    type: 'path',
    describe: 'CA of the issuer, PEM, if it is not one that everybody knows',
    group: 'Issuer',
    placeholder: 'FILE',
  },
} as const

/** Reads the CA that the option names, if it does. */
export async function readCaFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const text = await readGivenFile(
    path,
    (why, cause) => new CommandFailed('CA_UNREADABLE', `cannot read ${path}: ${why}`, { cause }),
  )
  const { parseCertificates, PemInvalid } = await import('../pki/trust/index.ts')
  try {
    parseCertificates(text)
    return text
  } catch (cause) {
    if (!(cause instanceof PemInvalid)) throw cause
    throw new CommandFailed('CA_UNREADABLE', `${path} is no CA file: ${cause.message}`, { cause })
  }
}
