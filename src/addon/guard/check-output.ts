import { foldHeaderName } from '../../http/index.ts'
import { emittedNames, type IdentityOutput } from './identity-output.ts'

const headerName = /^[A-Za-z][\w-]*$/

/** By these a request is framed, led, or proved: with a name of ours in them it would be another one. */
const taken = new Set([
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-forwarded-for',
])

/** What is wrong with the names of headers by which an add-on is told its user, each as one sentence. */
export function problemsOfOutput(output: IdentityOutput): string[] {
  const names = emittedNames(output)
  const folded = names.map(foldHeaderName)
  const isOurs = (name: string): boolean =>
    output.impersonation === true && name.startsWith('impersonate-')
  return names.flatMap((name, index) => {
    const plain = folded[index] ?? ''
    if (!headerName.test(name)) return [`"${name}" is not the name of a header`]
    if (taken.has(plain)) return [`the header ${name} has another purpose and can tell no user`]
    if (folded.indexOf(plain) !== index) return [`the header ${name} would tell two things`]
    return isOurs(plain) ? [`the header ${name} is one of those of impersonation`] : []
  })
}
