import type { Secret } from '../../core/index.ts'
import type { KubeconfigUser } from '../../kubeconfig/index.ts'
import { parseJoinToken } from '../client/join-token.ts'
import { tokenText } from '../tokens/bootstrap-token.ts'

/** A token as the credential that asks for a certificate; for servers only that have proved who they are, also by the pins it may have. */
export const bootstrapCredential = (token: Secret | string): KubeconfigUser => ({
  token: tokenText(parseJoinToken(token).token),
})
