export {
  startTestIssuer,
  type TestAccount,
  type TestIssuer,
  type TestIssuerOptions,
} from './fake-issuer.ts'
