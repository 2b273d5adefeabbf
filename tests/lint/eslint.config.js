// ESLint's rules for the dashboard and its browser test. Copied next to its packages in build/eslint before it is run.
import js from '@eslint/js';
import globals from 'globals';
import hooks from 'eslint-plugin-react-hooks';

const rules = {
  ...js.configs.recommended.rules,
  'array-callback-return': 'error',
  'eqeqeq': ['error', 'always', { null: 'ignore' }],
  'no-eval': 'error',
  'no-implied-eval': 'error',
  'no-new-func': 'error',
  'no-constructor-return': 'error',
  'no-promise-executor-return': 'off', // `new Promise((done) => setTimeout(done, ms))` is the usual form
  'no-self-compare': 'error',
  'no-shadow': 'error',
  'no-template-curly-in-string': 'error',
  'no-throw-literal': 'error',
  'no-unmodified-loop-condition': 'error',
  'no-unreachable-loop': 'error',
  'no-useless-assignment': 'error',
  'no-var': 'error',
  'prefer-const': 'error',
  'require-atomic-updates': 'error',
};
export default [
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['orchestrator/web/*.js', 'tests/lint/planted/*.js'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: { ...globals.browser, VOLUME_GB_MAX: 'readonly' } }, // build.sh's
    plugins: { 'react-hooks': hooks },
    rules: { ...rules, ...hooks.configs['recommended-latest'].rules, 'react-hooks/exhaustive-deps': 'error' },
  },
  {
    files: ['tests/e2e/*.mjs', 'tests/openapi/*.mjs', 'tests/aws_sdk/*.mjs'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: { ...globals.node, ...globals.browser } },
    rules,
  },
];
