import type { CredentialError, CredentialErrorCode } from '../credentials/index.ts'

const hints: Partial<Record<CredentialErrorCode, string>> = {
  NOT_FOUND: 'install it, or put its directory into PATH',
  NOT_EXECUTABLE: 'name a program that you may run',
  VERSION_MISMATCH:
    'put the version that the plugin speaks into the exec section of the kubeconfig',
  INTERACTIVE_UNAVAILABLE: 'run this in a terminal, with nothing piped into it',
  POLICY_DENIED: 'if you trust the plugin, allow it in your kuberc (credentialPluginPolicy)',
  TOKEN_INVALID: 'remove spaces and line breaks from the token',
  TIMEOUT: 'run the plugin by hand: it may wait for an answer or for the network',
  CERTIFICATE_INVALID: 'ask who gave you this kubeconfig for a new one',
  CERT_KEY_MISMATCH: 'ask who gave you this kubeconfig for a new one',
}

const anyHint = 'run the plugin by hand, or ask who gave you this kubeconfig'

/** A failure in the words of a command: what is wrong, and once only what can be done about it. */
export function credentialFailure({ code, message, hint }: CredentialError): {
  readonly code: string
  readonly message: string
  readonly hint: string
} {
  const isSaidTwice = hint !== undefined && message.endsWith(hint)
  return {
    code,
    message: isSaidTwice ? message.slice(0, -hint.length).trimEnd() : message,
    hint: hint ?? hints[code] ?? anyHint,
  }
}
