import type { Credential } from '../credential.ts'

/** Whether two credentials prove the same in the same way, whatever they say about their end. */
export function provesTheSame(a: Credential, b: Credential): boolean {
  if (a === b) return true
  const others = proofs(b)
  return proofs(a).every((proof, index) => proof === others[index])
}

const proofs = ({ token, basic, clientCertificate }: Credential): (string | undefined)[] => [
  token?.reveal(),
  basic?.username,
  basic?.password.reveal(),
  clientCertificate?.certPem,
  clientCertificate?.keyPem.reveal(),
]
