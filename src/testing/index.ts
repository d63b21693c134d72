export {
  startTestIssuer,
  type TestAccount,
  type TestIssuer,
  type TestIssuerOptions,
} from './test-issuer.ts'
