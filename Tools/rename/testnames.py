#!/usr/bin/env python3
"""One style of test names: @Test("Sentence", traits) func name(...)  ->  @Test(traits) func `Sentence`(...);
suites have no display name."""
import re,sys,os
root=sys.argv[1]
def string_end(s,i):
    assert s[i]=='"'
    if s[i:i+3]=='"""': return s.index('"""',i+3)+2
    j=i+1
    while s[j]!='"':
        if s[j]=='\\': j+=1
        j+=1
    return j
changed=0;skipped=[];long=[]
for d,_,fs in os.walk(root):
    if '/Interop/' in d+'/' or 'TidyTests' in d or '/Package' in d: continue
    for f in fs:
        if not f.endswith('.swift'): continue
        p=os.path.join(d,f); s=open(p).read(); o=s
        out='';i=0
        for m in list(re.finditer(r'@Test\(\s*"',s)):
            q=m.end()-1
            if q<i: continue
            e=string_end(s,q)
            text=s[q+1:e]
            # the closing paren of @Test( ... )
            depth=1;k=e+1
            while depth and k<len(s):
                c=s[k]
                if c=='"': k=string_end(s,k)
                elif c in '([{': depth+=1
                elif c in ')]}': depth-=1
                k+=1
            rest=s[e+1:k-1]
            fm=re.match(r'(\s*(?:@\w+(?:\([^)]*\))?\s*)*(?:(?:private|static|nonisolated|mutating|package|public)\s+)*func\s+)(\w+|`[^`]+`)',s[k:])
            if not fm: skipped.append((p,text)); continue
            name=text.replace('\\"','"')
            if '\\' in name or '`' in name: skipped.append((p,text)); continue
            rest2=re.sub(r'^\s*,\s*','',rest,count=1)
            attr='@Test('+rest2.strip()+')' if rest2.strip() else '@Test'
            if '\n' in rest and rest2.strip():
                # keep the layout: leave to swift format
                attr='@Test('+rest2.rstrip()+')' if not rest.endswith('\n') else '@Test(\n'+rest2.strip()+'\n)'
            out+=s[i:m.start()]+attr+fm.group(1)+'`'+name+'`'
            i=k+fm.end()
        out+=s[i:]
        s=out
        s=re.sub(r'@Suite\("(?:[^"\\]|\\.)*"\)\s*\n',lambda m:'@Suite\n',s)
        s=re.sub(r'@Suite\("(?:[^"\\]|\\.)*",\s*','@Suite(',s)
        if s!=o: open(p,'w').write(s); changed+=1
        for l in s.split('\n'):
            if 'func `' in l and len(l)>120: long.append((p,len(l),l.strip()))
print(changed,'files'); print(len(skipped),'skipped',skipped[:5]); print(len(long),'long')
for x in long[:400]: print(x)
