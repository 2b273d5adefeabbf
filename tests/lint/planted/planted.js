// A fault that ESLint must find.
export const planted = (a) => { if (a == 1) return undefinedName; return 0; };
