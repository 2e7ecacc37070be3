import ast,collections,re,sys
sys.argv=["x"]
exec(open("/tmp/map-A-tools/a_gen.py").read().split('if __name__')[0])
trees={}
allpy=[p for top in ("shared","functions","infra","tests","tools") for p in root.glob(top+"/**/*.py")]
for p in allpy: trees[str(p.relative_to(root))]=ast.parse(p.read_text())
def members(c):
    m=set()
    for n in c.body:
        if isinstance(n,(ast.FunctionDef,)): m.add(n.name)
        if isinstance(n,ast.AnnAssign) and isinstance(n.target,ast.Name): m.add(n.target.id)
    for n in ast.walk(c):
        if isinstance(n,ast.Attribute) and isinstance(n.value,ast.Name) and n.value.id=="self" and isinstance(n.ctx,ast.Store): m.add(n.attr)
    return m
classes={}
for f,t in trees.items():
    for n in ast.walk(t):
        if isinstance(n,ast.ClassDef): classes.setdefault(n.name,[]).append((f,n))
ok=0
ren_c=collections.defaultdict(dict)
for f,dd,n in DEFS:
    if "." in dd and dd.count(".")==1: ren_c[(f,dd.split(".")[0])][dd.split(".")[1]]=n
for f,dd,n in DEFS:
    if f not in trees: print("NOFILE",f); continue
    t=trees[f]; parts=dd.split(".")
    body=t.body; node=None
    for i,x in enumerate(parts):
        hit=None
        for k in body:
            for kk in ([k] if not isinstance(k,(ast.If,ast.Try)) else k.body):
                if isinstance(kk,(ast.FunctionDef,ast.ClassDef)) and kk.name==x: hit=kk
                elif isinstance(kk,ast.Assign) and any(isinstance(z,ast.Name) and z.id==x for z in kk.targets): hit=kk
                elif isinstance(kk,ast.AnnAssign) and isinstance(kk.target,ast.Name) and kk.target.id==x: hit=kk
        if hit is None and i>0 and isinstance(node,ast.ClassDef) and x in members(node): hit="attr"
        if hit is None: print("MISSING",f,dd); break
        node=hit; body=getattr(hit,"body",[])
    else:
        ok+=1
        if len(parts)==2 and parts[0] in classes:
            cn=parts[0]; c=[z for ff,z in classes[cn] if ff==f][0]
            m=members(c); bases=[b.id for b in c.bases if isinstance(b,ast.Name)]
            while bases:
                b=bases.pop()
                for ff,z in classes.get(b,[]):
                    if ff.startswith("shared"): m|={ren_c[(ff,b)].get(q,q) for q in members(z)}; bases+=[y.id for y in z.bases if isinstance(y,ast.Name)]
            mine={ren_c[(f,cn)].get(q,q) for q in m}
            if n in m and n not in ren_c[(f,cn)]: print("CLASSCOLL",f,dd,n)
            if sum(1 for q,v in ren_c[(f,cn)].items() if v==n)>1: print("TWICE",f,dd,n)
        if len(parts)==1:
            top=set()
            for k in t.body:
                if isinstance(k,(ast.FunctionDef,ast.ClassDef)): top.add(k.name)
                if isinstance(k,(ast.Import,ast.ImportFrom)): top|={al.asname or al.name for al in k.names}
                if isinstance(k,ast.Assign): top|={z.id for z in k.targets if isinstance(z,ast.Name)}
                if isinstance(k,ast.AnnAssign): top.add(k.target.id)
            if n in top: print("TOPCOLL",f,dd,n)
            # importers
            for g,tt in trees.items():
                imp=False
                for k in ast.walk(tt):
                    if isinstance(k,ast.ImportFrom) and k.module==mod(f) and any(al.name==dd for al in k.names): imp=True
                if imp:
                    names={k.id for k in ast.walk(tt) if isinstance(k,ast.Name)}|{k.arg for k in ast.walk(tt) if isinstance(k,ast.arg)}|{k.name for k in ast.walk(tt) if isinstance(k,(ast.FunctionDef,ast.ClassDef))}|{al.asname or al.name for k in ast.walk(tt) if isinstance(k,(ast.ImportFrom,ast.Import)) for al in k.names}
                    if n in names: print("IMPCOLL",g,"imports",dd,"->",n)
newc=collections.Counter()
for f,dd,n in DEFS:
    if "." not in dd and dd in classes and any(ff==f for ff,_ in classes[dd]):
        if [ff for ff,_ in classes.get(n,[]) if ff.startswith(("shared","functions","infra/aws"))]: print("DUPCLASS",n,classes[n][0][0])
        newc[n]+=1
print([k for k,v in newc.items() if v>1]); print("defs ok",ok,len(DEFS))
gl=open(root/"docs/glossary.md").read()
for f,dd,n in DEFS:
    if f"`{dd.split('.')[-1]}`" in gl: print("GLOSSARY",dd,n)
